"""The documents that processes exchange: frozen models, canonical JSON and hashes."""
