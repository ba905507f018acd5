"""Plans: evaluate several models on several exams in one command; each pair is a separate run."""
