"""Palestra on one machine: its processes, its data directory, its life from start to stop."""
