"""Implementation of `workers.entrypoints.trainer`, the garage-style trainers."""
