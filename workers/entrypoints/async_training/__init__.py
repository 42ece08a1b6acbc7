"""Behind `train_agent_async`: N engines in N processes with one clock."""
