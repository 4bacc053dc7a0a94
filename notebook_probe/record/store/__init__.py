"""Locations of records: folders, archives, remote stores; and the right to write there.

Used by readers and writers; knows bytes and names, no rows.
"""
