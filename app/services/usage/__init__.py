"""What persons and projects used: shares of pools and accounting."""
