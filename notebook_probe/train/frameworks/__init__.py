"""Callbacks for other people's trainers: a module for each library, none imported before it is."""
