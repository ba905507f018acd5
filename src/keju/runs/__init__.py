"""Stored runs: their folder, manifest and journals."""
