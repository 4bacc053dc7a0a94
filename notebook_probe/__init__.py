"""Look inside a neural network while it trains, in the notebook where you already work."""
