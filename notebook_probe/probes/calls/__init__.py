"""A module's calls: inputs, outputs, their gradients, attention, and what a forward collects."""
