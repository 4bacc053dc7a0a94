"""Locations of records: folders, archives, remote stores; and the right to write there.

Used by readers and writers; deals with bytes and names, not with rows.
"""
