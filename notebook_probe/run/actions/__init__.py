"""Public methods of a run, by caller: loops, readers, controllers, annotators."""
