"""Items of a collector: one per file, each switched by its own setting."""
