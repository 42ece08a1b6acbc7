"""Parts of `experiment`: schedules of estimators and agents."""
