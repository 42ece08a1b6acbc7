"""The composition root: from a definition to parts that fit together."""
