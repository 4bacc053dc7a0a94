"""Everything that a machine with a GPU can tell, in one run of nine minutes: ``make gpu``."""
