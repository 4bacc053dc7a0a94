"""Looking at streams, recorded or live: joined, lazily, thinned, by branch.

Used by readers, by the writer's source, by figures and the explorer; it opens no store.
"""
