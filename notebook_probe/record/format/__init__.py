"""What a record is: names, arrays, axes, kinds and codecs, and what a reader is given."""
