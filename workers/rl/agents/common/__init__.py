"""Modules that several algorithms share: policies, optimisers, normalisation and returns."""
