"""Queries and writes, one module per group of tables. They take a session and never commit."""
