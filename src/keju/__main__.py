"""``python -m keju`` is the command ``keju``."""

try:
    from keju.cli import main
except KeyboardInterrupt:  # Ctrl-C during the import
    from keju.cli import end_interrupted

    end_interrupted()

main()
