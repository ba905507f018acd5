"""Tests of keju.results."""
