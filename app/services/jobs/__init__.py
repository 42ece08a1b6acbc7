"""Jobs: their states, and which starts next."""
