"""The data of a training: any iterable, as batches with inputs and labels."""
