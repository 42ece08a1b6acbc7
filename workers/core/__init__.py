"""Protocols, types, errors and random generators that all parts of the trainer may import."""
