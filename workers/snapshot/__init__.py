"""Snapshots: everything needed to resume a run, in a directory that is whole or does not exist."""

from workers.snapshot.config import SnapshotConfig as SnapshotConfig
