"""The last steps of a dense preset, kept in memory and written when something happens."""
