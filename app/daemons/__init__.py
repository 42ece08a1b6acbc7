"""Loops that keep the promises: the dispatcher rings, the reaper gives up what is lost, the
compactor forgets what has aged.
"""

from app.daemons.main import run

__all__ = ["run"]
