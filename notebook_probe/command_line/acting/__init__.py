"""Verbs that act on a training in another process: a request goes there, a ticket comes back."""
