"""The notebooks in which a panel is shown, and how each receives clicks while a cell runs."""
