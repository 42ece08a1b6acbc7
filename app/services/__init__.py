"""Verbs: what the server can do. Services take a session and never commit."""
