"""``keju doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.kinds import EXTRAS
from keju.cli.output import print_json
from keju.config import load as settings
from keju.errors import EndpointError, KejuError

if TYPE_CHECKING:
    from keju.models.openai import OpenAIModel

app = options.new_app()

CORE = ("keju", "jinja2", "msgspec", "pydantic", "pyreqwest", "pyyaml", "rich", "typer")
ENDPOINT = "Endpoint"
SECONDS = 10.0


class Check(NamedTuple):
    """One line of the examination."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    """What to do where it is missing."""
    optional: bool = True
    exit_code: int = 2


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju doctor",
        "keju doctor --api-url http://localhost:8000/v1 --model NAME",
        "keju doctor --data-dir data --json",
    ),
)
def doctor(
    data_dir: options.DataDir = None,
    work_dir: options.WorkDir = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="NAME", help="Ask it.", rich_help_panel=ENDPOINT),
    ] = None,
    api_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Endpoint to reach.", rich_help_panel=ENDPOINT),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Its key (or OPENAI_API_KEY).", rich_help_panel=ENDPOINT),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Examine the installation: versions, optional parts, data, folders, the endpoint."""
    checks = [*_software(), *_data(data_dir), *_folders(work_dir)]
    if api_url is not None:
        key = api_key or os.environ.get("KEJU_API_KEY") or os.environ.get("OPENAI_API_KEY")
        checks.append(_endpoint(api_url, key, model))
    if as_json:
        print_json({"checks": [_document(check) for check in checks]})
    else:
        _print(checks)
    failed = [check.exit_code for check in checks if not check.ok and not check.optional]
    return failed[-1] if failed else 0


def _software() -> Iterator[Check]:
    yield Check("python", True, platform.python_version())
    for package in CORE:
        version = _version(package)
        remedy = "" if version else "pip install keju"
        yield Check(package, bool(version), version or "not installed", remedy, optional=False)
    for extra in EXTRAS:
        missing = extra.missing
        found = f"lacks {', '.join(missing)}" if missing else "installed"
        remedy = f"{extra.remedy}  ({extra.about})" if missing else ""
        yield Check(f"extra {extra.name}", not missing, found, remedy)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _data(flag: str | None) -> Iterator[Check]:
    from keju.sources.layouts import LAYOUTS

    named = settings.data_dir(flag)
    if named is None:
        remedy = "give --data-dir DIR or set KEJU_DATA_DIR"
        yield Check("data folder", False, "not named", remedy)
        return
    folder = Path(named)
    remedy = "" if folder.is_dir() else "name a folder that exists"
    yield Check("data folder", folder.is_dir(), str(folder), remedy, optional=flag is None)
    if not folder.is_dir():
        return
    for name in LAYOUTS:
        there = (folder / name).is_dir()
        found = str(folder / name) if there else "not there"
        remedy = "" if there else f"keju data pull {name}"
        yield Check(f"data {name}", there, found, remedy)


def _folders(work_dir: str | None) -> Iterator[Check]:
    from keju.sources.cache import cache_root

    for name, folder in (
        ("cache folder", cache_root(os.environ)),
        ("work folder", settings.work_dir(work_dir)),
    ):
        usable = _writable(folder)
        flag = "KEJU_CACHE_DIR" if name == "cache folder" else "--work-dir"
        remedy = "" if usable else f"choose another with {flag}"
        yield Check(name, usable, str(folder), remedy, optional=False)


def _writable(folder: Path) -> bool:
    """Whether files can be made in `folder`, or it in the nearest folder that exists."""
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    return existing.is_dir() and os.access(existing, os.W_OK)


def _endpoint(api_url: str, api_key: str | None, model: str | None) -> Check:
    import asyncio

    try:
        found = asyncio.run(_reach(api_url, api_key, model))
    except KejuError as error:
        code = error.exit_code if isinstance(error, EndpointError) else 2
        return Check("endpoint", False, "no", str(error), optional=False, exit_code=code)
    return Check("endpoint", True, found)


async def _reach(api_url: str, api_key: str | None, name: str | None) -> str:
    from keju.models.openai import OpenAIModel
    from keju.types import Sampling

    model = OpenAIModel(name or "", api_url=api_url, api_key=api_key, preflight_timeout=SECONDS)
    await model.start()
    try:
        if name:
            await model.preflight(Sampling())
            return f"{model.address.shown} answers as {name}"
        return await _list_models(model)
    finally:
        await model.close()


async def _list_models(model: OpenAIModel) -> str:
    """Ask for the list of models, which costs nothing; any sensible reply shows a server."""
    from keju.models.faults import refused
    from keju.models.transport import TransportError

    shown = model.address.shown
    try:
        reply = await model.transport.get(model.address.models, SECONDS)
    except TransportError as error:
        told = model.redact(error.message)
        raise EndpointError(f"cannot reach {shown} ({told}): check --api-url") from None
    if reply.status in (401, 403):
        raise EndpointError(f"{shown} refuses the key ({reply.status}): set --api-key")
    if not 200 <= reply.status < 300:
        fault = refused(reply.status, reply.body, reply.header, model.redact)
        raise EndpointError(f"{shown} answers {reply.status}: {fault.message}; check --api-url")
    return f"{shown} answers"


def _document(check: Check) -> dict[str, Any]:
    status = "ok" if check.ok else "missing"
    return {"name": check.name, "status": status, "found": check.found, "remedy": check.remedy}


def _print(checks: list[Check]) -> None:
    from keju.report.table import Column, render_table

    columns = [Column(name) for name in ("check", "status", "found", "what to do")]
    render_table(columns, [list(_document(check).values()) for check in checks])
