"""One step of training or evaluation: losses, gradients, updates, metrics."""
