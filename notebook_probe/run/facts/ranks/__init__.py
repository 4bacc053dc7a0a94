"""Facts about the ranks of one job, from their records alone; no rank waits for another.

every rank: some steps ─▶ norms of weights, rates, types ─▶ an attribute of its record
rank 0:     the attributes of all records ─▶ the first step at which they differ
"""
