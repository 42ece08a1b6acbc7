"""The `palestra` command.

Starts server, daemons, worker and migrations only as processes of their own.
"""
