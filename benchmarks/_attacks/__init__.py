"""Parts of `benchmarks.team_attacks`: the timed server, its content, and the attacks."""
