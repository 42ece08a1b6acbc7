"""Parts of `train_agent_async`: one engine per process, with a clock in shared memory."""
