"""``keju view``: shows stored runs in a browser."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from keju.cli.command import command
from keju.cli.common import is_same_stream, print_json, print_lines, remark
from keju.errors import MissingExtra, UsageError
from keju.messages import label_text


@command(
    "view",
    "keju view",
    "keju view runs --port 8080",
    "keju view tuesday --no-browser",
    "keju view monday tuesday",
    "keju view --terminal",
    forms="terminal",
)
def view(
    sources: list[str] | None,
    port: int | None,
    host: str,
    no_browser: bool,
    data_dir: str | None,
    work_dir: str | None,
    as_json: bool,
) -> int:
    """Show stored runs in a browser, read-only, until Ctrl-C; active runs are shown live.

    With several runs, the page that compares them opens. Only this machine can open the pages.
    With another --host they need the token in the address.
    """
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise MissingExtra("keju view", "view")
    from keju.viewer.app import serve

    place, run_names = _find_runs(sources or [], work_dir)

    def on_start(address: str) -> None:
        address = _comparison_page(address, run_names)
        message = label_text("view.at", folder=place, address=address)
        remark(message)
        if as_json:
            print_json({"folder": str(place), "address": address})
        elif not is_same_stream():
            print_lines(message)
        sys.stdout.flush()  # readers of a pipe need it while the pages are served
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(place, host=host, port=port, data_dir=data_dir, on_start=on_start)
    return 0


def _find_runs(sources: list[str], work_dir: str | None) -> tuple[Path, list[str]]:
    """Return the folder to show, and the names of the runs in it that are compared."""
    from keju.config.load import MANIFEST

    if len(sources) < 2:
        return _find_folder(sources[0] if sources else None, work_dir), []
    folders = [_find_folder(name, work_dir).absolute() for name in dict.fromkeys(sources)]
    places = {folder.parent for folder in folders}
    for folder in folders:
        if not (folder / MANIFEST).is_file():
            raise UsageError("view_no_run", folder=folder)
    if len(places) > 1:
        raise UsageError(
            "view_apart", command=f"keju compare {shlex.join(sources)} -o compare.html"
        )
    return places.pop(), [folder.name for folder in folders]


def _comparison_page(address: str, run_names: list[str]) -> str:
    """Return the address of the page that compares these runs, if there are any."""
    if not run_names:
        return address
    parts = urlsplit(address)
    query = urlencode([*parse_qsl(parts.query), *(("run", name) for name in run_names)])
    return urlunsplit(parts._replace(path="/compare", query=query))


def _find_folder(name: str | None, work_dir: str | None) -> Path:
    """Return the folder to show: an existing folder, or the folder of a run."""
    from keju.config.load import runs_folder
    from keju.runs.run import find_run, suggest_runs

    work_folder = runs_folder(work_dir)
    place = Path(name) if name is not None else work_folder
    if place.is_dir():
        return place
    if name is None:
        raise UsageError("view_no_folder", folder=place, hint="")
    try:
        return find_run(name, str(work_folder))
    except UsageError as error:
        if error.code != "run_none":  # other errors, such as address errors, say more
            raise
        raise UsageError(
            "view_no_folder", folder=place, hint=suggest_runs(name, work_folder)
        ) from None
