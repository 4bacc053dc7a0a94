"""Readers of the formats of other tools, a file each; none needs the tool's package."""
