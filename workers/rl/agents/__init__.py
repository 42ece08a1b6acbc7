"""Built-in agents: each one plain file with its mathematics as pure functions."""
