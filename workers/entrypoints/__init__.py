"""What callers import: training functions, trainers and experiments, each over the one engine."""
