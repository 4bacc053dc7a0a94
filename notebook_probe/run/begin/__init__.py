"""What is settled before a run begins: which process, which record, which earlier run gives way.

Only `watch` enters.
"""
