"""The pictures of docs/quantities: trainings that show something, and how they are drawn."""
