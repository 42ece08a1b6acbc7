"""All that crosses a process boundary: frozen documents, canonical JSON, hashes."""
