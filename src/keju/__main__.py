"""``python -m keju`` is the command ``keju``."""

from keju.cli import main

main()
