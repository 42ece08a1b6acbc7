"""Snapshots: everything needed to resume a run, in a directory that is written atomically."""

from workers.snapshot.config import SnapshotConfig as SnapshotConfig
