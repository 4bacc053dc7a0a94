"""Pictures of many runs at once: parallel coordinates."""
