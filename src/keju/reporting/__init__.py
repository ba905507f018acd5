"""Tables in the terminal, the live display of a run, and reports as HTML pages."""
