"""Tests of keju.stats."""
