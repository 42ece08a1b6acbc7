"""The log of all changes, and the streams that tell of them."""
