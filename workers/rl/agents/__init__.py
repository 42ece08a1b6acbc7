"""Built-in agents: one module per algorithm, with targets, losses and updates as pure functions."""
