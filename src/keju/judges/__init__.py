"""Grading with a model: what it is shown, how its verdict is read, how far it can be trusted."""
