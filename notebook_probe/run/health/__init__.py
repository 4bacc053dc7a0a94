"""How a run is doing: its state, its speed, and why a probe is silent."""
