"""Notifications about a run by mail, chat or phone.

A thread reads the record and the status, as any reader does: training never waits for it.
"""
