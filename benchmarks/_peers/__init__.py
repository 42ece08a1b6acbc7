"""The same tasks trained by Palestra and by other libraries."""
