"""Mathematics that several algorithms share: losses, policies, optimisers, normalisation, returns."""
