"""``keju view``: stored runs in a browser."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from keju.cli.command import command
from keju.cli.common import print_json, print_lines, read_together, remark
from keju.errors import MissingExtra, UsageError
from keju.messages import said


@command("view", "keju view", "keju view runs --port 8080", "keju view runs/tuesday --no-browser")
def view(
    folder: str | None,
    port: int,
    host: str,
    no_browser: bool,
    data_dir: str | None,
    work_dir: str | None,
    as_json: bool,
) -> int:
    """Show stored runs in a browser, read-only, until Ctrl-C; runs that go on are shown live.

    Only this machine can open the pages. With another --host they need the token in the address.
    """
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise MissingExtra("keju view", "view")
    from keju.config.load import runs_folder
    from keju.runs.remote import fetched
    from keju.viewer.app import serve

    place = Path(folder) if folder is not None else runs_folder(work_dir)
    if folder is not None and "://" in folder:
        place = fetched(folder)
    if not place.is_dir():
        raise UsageError("view_no_folder", folder=place)

    def started(address: str) -> None:
        told = said("view.at", folder=place, address=address)
        remark(told)
        if as_json:
            print_json({"folder": str(place), "address": address})
        elif not read_together():
            print_lines(told)
        sys.stdout.flush()  # whoever reads a pipe waits for it while the pages are served
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(place, host=host, port=port, data_dir=data_dir, on_start=started)
    return 0
