"""Mathematics that several algorithms share.

Losses, policies, optimisers, normalisation and returns.
"""
