"""The HTTP API: thin routes, authentication, strict bodies, problem details."""
