"""Behind `functional`: what one call of a training function builds and runs."""
