"""Runs as logs of other tools, and back."""
