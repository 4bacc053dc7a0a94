"""What is measured where: requests, presets, default places, and the probes they come to."""
