"""One step of a training or of an evaluation: losses, gradients, updates, metrics."""
