"""The parts of `benchmarks.stream_clients`: content of the server, senders of points, clients."""
