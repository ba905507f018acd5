"""Grading with a model: what it is shown, how its verdict is read, and how far it can be trusted."""
