"""Trains presets over several seeds and tabulates their final returns."""
