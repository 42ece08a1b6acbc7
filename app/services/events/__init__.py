"""The event log of all changes, and the live streams that distribute it."""
