"""Looking at streams, recorded or live: joined, lazily, thinned, by branch.

Entered by readers, by the writer's own source, by figures and the explorer; it opens no store.
"""
