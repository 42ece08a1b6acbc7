"""Routes of version 1."""
