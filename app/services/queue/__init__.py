"""Reads the state of a pool's queue for the decisions of `app.domain.queue`."""
