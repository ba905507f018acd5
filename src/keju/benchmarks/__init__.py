"""The exams: one room each, and the registry that finds them by name."""
