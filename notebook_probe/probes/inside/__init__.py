"""Readings inside the graphs of ``torch.compile``."""
