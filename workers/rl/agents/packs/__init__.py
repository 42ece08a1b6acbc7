"""Several agents of one definition that act and learn as one batch, one per seed."""
