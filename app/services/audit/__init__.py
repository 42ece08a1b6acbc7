"""The audit log: what was done and refused, by whom, from where, in a chain of hashes."""
