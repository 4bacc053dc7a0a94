"""Facts about the loss, read from its autograd graph."""
