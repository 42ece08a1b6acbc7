"""Behind `trainer`: session, parts, records and plots of a garage-style training."""
