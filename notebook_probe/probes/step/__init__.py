"""One step: probes, the open frame, and what tells where a step begins and ends."""
