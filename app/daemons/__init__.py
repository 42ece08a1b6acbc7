"""Background loops: dispatcher, reaper, compactor and remover.

The dispatcher sends dispatch messages, the reaper ends lost attempts, the compactor deletes expired
rows, the remover deletes the content of deleted projects.
"""

from app.daemons.main import run

__all__ = ["run"]
