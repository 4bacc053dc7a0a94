"""What a view shows of a source: rows read, thinned to the pixels, and sent."""
