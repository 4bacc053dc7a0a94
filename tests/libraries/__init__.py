"""What other people's trainers and models do with a watched model, and it with them.

The libraries live in an environment of their own: ``make test-libraries``. Elsewhere nothing here
is collected.
"""
