"""Tests of keju.models.anthropic."""
