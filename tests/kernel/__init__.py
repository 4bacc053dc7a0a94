"""Protocol tests: a front end without a browser, a real kernel, a cell that blocks."""
