"""The one engine: nothing else loops over training.

Imports the protocols of `workers.core` and nothing else.
"""
