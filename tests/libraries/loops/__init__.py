"""Loops of users' own, each beside one that nobody watches; nothing is downloaded."""
