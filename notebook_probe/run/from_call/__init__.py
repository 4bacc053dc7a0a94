"""Results of a call of the model, made on request: its graph, and an examination."""
