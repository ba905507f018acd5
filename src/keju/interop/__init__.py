"""Connections to other tools: imports of their logs, exports, and Keju's exams as their
environments."""
