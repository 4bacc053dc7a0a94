"""The networks of the trainings, as their kinds are commonly written."""
