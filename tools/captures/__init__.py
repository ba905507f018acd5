"""Captures of the terminal: what the commands print on screens of two sizes, in both languages."""
