"""The engine: the only training loop.

Imports only `workers.core`.
"""
