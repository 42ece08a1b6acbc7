"""What attempts report: checked, stored in batches, committed in groups."""
