"""What a job of each schedule does in a trainer process."""
