"""Other tools: their logs as runs, Keju's exams as their environments."""
