"""Statistics in plain Python. Every function is pure, and every function that uses chance takes a
seed."""
