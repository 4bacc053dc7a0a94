"""Lines: the selected series, each thinned to the pixels; averages of all recorded values.

`lines` is the view, `average_lines` and `long_lines` what it draws, `pixel_points` thins it.
"""
