"""Model functions, input functions and the learner of supervised jobs."""
