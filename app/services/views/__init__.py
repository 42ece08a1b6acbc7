"""Rows as the resources of the API."""
