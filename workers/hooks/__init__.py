"""Hooks: they look on and may ask the engine to stop, to evaluate or to save."""
