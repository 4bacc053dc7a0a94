"""Numbers about the steps of a training or of an evaluation, found without waiting for a device."""
