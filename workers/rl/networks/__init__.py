"""Networks as pure functions of inputs and parameters, which are a dictionary of tensors."""
