"""The exams, one package each, and the registry that finds them by name."""
