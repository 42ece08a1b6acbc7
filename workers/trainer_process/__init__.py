"""The trainer process of one attempt: from the work order to the report."""
