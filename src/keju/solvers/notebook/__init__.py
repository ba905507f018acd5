"""Notebooks as tools: cells in a sandboxed kernel, for exams that need one and for any other
exam."""
