"""Folder that is on PYTHONPATH of a program under ``nbp run``."""
