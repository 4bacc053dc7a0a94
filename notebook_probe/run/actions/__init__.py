"""Public methods of a run, by who calls them: loops, readers, controllers, note keepers."""
