"""The documented path of the environments of Palestra; see `workers.rl.envs`."""
