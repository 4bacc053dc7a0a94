"""The Explorer: the live panel. The only place that imports ipywidgets, anywidget and IPython."""
