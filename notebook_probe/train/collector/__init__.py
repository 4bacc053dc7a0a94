"""Numbers of a training, kept exactly: what a model or a loop names, series by series."""
