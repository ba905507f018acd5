"""Tests of keju.messages."""
