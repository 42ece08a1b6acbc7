"""What supervised jobs need: model functions, inputs, the learner."""
