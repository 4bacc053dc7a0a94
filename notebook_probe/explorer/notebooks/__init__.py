"""The notebooks in which a panel is shown, and how each hears its clicks while a cell runs."""
