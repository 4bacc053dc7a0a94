"""Looking at streams, recorded or live: joined, lazily, thinned, by branch."""
