"""Background loops: dispatcher, reaper, compactor and remover.

The dispatcher sends dispatch messages, the reaper ends lost attempts, the compactor deletes old
rows.
"""

from app.daemons.main import run

__all__ = ["run"]
