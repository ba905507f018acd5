"""Statistics in plain Python: every function is pure, and every random one takes a seed."""
