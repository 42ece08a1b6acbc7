"""Behind `experiment`: schedules of estimators and agents."""
