"""Shares of requests that fail, by fault."""

from __future__ import annotations

FAULTS = {"429": 0.2, "500": 0.1, "drop": 0.05, "malformed": 0.03, "stall": 0.02, "empty": 0.01}
