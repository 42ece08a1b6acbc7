"""Parts of `train_agent_async`: N engines in N processes that share one clock."""
