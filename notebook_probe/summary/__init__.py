"""What is collected of a training as a whole: its data, its lineage, and more, in one record."""
