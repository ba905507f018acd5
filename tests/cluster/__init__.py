"""Tests against a real cluster of Ray: several nodes on this machine, on its loopback address."""
