"""Packs: agents of one definition, one per seed, that act and learn as one batch."""
