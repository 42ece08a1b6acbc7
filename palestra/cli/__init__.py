"""The `palestra` command.

Server, daemons, worker and migrations run in separate processes.
"""
