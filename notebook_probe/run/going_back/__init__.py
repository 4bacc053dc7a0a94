"""Going back to a step where a click asks for it; the loop that can does it, this only asks."""
