"""Notebooks as tools: cells in a sandboxed kernel, for exams that ask for one and for any exam."""
