"""Benchmarks of Keju itself, printed as ratios."""
