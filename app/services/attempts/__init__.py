"""Attempts: claims, leases, and how an attempt ends."""
