"""What every part of the trainer may know: protocols, types, errors, derived randomness."""
