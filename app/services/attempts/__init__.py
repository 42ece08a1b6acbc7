"""Attempts: their claims, leases, work orders and ends."""
