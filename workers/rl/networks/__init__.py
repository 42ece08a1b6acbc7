"""Networks as functions of a dictionary of tensors."""
