"""What a collector collects: an item a file, each on or off by its own setting."""
