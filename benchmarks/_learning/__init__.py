"""Trains presets over several seeds and tabulates what they reach."""
