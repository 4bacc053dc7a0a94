"""What a run makes on request from a call of the model: its graph, and an examination."""
