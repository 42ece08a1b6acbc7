"""What runs on GPU machines. Sees of the rest only palestra."""
