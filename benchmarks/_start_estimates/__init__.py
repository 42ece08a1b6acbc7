"""Runtimes of trainings, and pools that are simulated with them."""
