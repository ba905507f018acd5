"""Keju inside other frameworks; each of these is an optional extra."""
