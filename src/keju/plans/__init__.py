"""Plans: several models sit several exams in one go, each pair a run of its own."""
