"""What people read: tables in the terminal, the live display of a run, and the one-file page."""
