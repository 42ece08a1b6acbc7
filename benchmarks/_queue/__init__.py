"""Parts of `benchmarks.queue_throughput` that run in processes of their own."""
