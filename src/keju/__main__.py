"""``python -m keju`` is the command ``keju``."""

try:
    from keju.cli import main
except KeyboardInterrupt:  # Ctrl-C while this was imported
    from keju.cli import end_interrupted

    end_interrupted()

main()
