"""``keju doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from keju.cli.command import command
from keju.cli.common import Output
from keju.errors import EndpointError, KejuError

CORE = ("keju", "jinja2", "msgspec", "pydantic", "pyreqwest", "pyyaml", "rich", "typer")
SECONDS = 10.0


class Check(NamedTuple):
    """One line of the examination."""

    name: str
    ok: bool
    state: str
    remedy: str = ""
    """What to do where it is missing."""
    optional: bool = True
    exit_code: int = 2
    fault: str = "missing"
    """What is wrong, in a word."""


@command(
    "doctor",
    "keju doctor",
    "keju doctor --api-url http://localhost:8000/v1 --model NAME",
    "keju doctor --data-dir data --json",
)
def doctor(
    data_dir: str | None,
    work_dir: str | None,
    model: str | None,
    api_url: str | None,
    api_key: str | None,
) -> Output:
    """Examine the installation: versions, optional parts, data, folders, the endpoint."""
    from keju.report.table import render_table

    checks = [*_software(), *_data(data_dir), *_folders(work_dir), *_sandboxes()]
    from keju.config.address import OPENAI, provider_of

    provider = provider_of(model)
    if api_url is not None or provider != OPENAI:  # the others have an address of their own
        import asyncio

        variables = ("KEJU_API_KEY", provider.key_variable)
        key = api_key or next(filter(None, map(os.environ.get, variables)), None)
        place = api_url or os.environ.get(provider.url_variable) or provider.home
        try:
            checks.append(Check("endpoint", True, asyncio.run(_reach(place, key, model))))
        except KejuError as error:
            code = error.exit_code
            checks.append(Check("endpoint", False, "no", str(error), False, exit_code=code))
    rows = [
        {
            "name": check.name,
            "status": "ok" if check.ok else check.fault,
            "found": check.state,
            "remedy": check.remedy,
        }
        for check in checks
    ]
    failures = [check.exit_code for check in checks if not check.ok and not check.optional]
    titles, cells = ["check", "status", "found", "what to do"], [list(row.values()) for row in rows]
    return Output(
        {"checks": rows},
        lambda: render_table(titles, cells),
        exit_code=failures[-1] if failures else 0,
    )


def _software() -> Iterator[Check]:
    from keju.models.registry import KINDS, Extra

    extras = (
        Extra("data", ("duckdb", "huggingface_hub"), "Parquet files and downloads from hubs"),
        *dict.fromkeys(kind.extra for kind in KINDS if kind.extra is not None),
        Extra("fast", ("uvloop",), "an event loop that takes less CPU"),
        Extra("logs", ("zstandard",), "logs of other tools that are packed with Zstandard"),
        Extra("mcp", ("mcp",), "MCP servers as tools"),
        Extra("agent", ("ipykernel",), "notebooks and Python as tools"),
        Extra("otel", ("opentelemetry.sdk",), "spans and metrics for OpenTelemetry"),
        Extra("view", ("starlette", "uvicorn"), "stored runs in a browser"),
        Extra("ray", ("ray",), "runs on a cluster of Ray"),
    )
    yield Check("python", True, platform.python_version())
    for package in CORE:
        try:
            yield Check(package, True, metadata.version(package), optional=False)
        except metadata.PackageNotFoundError:
            yield Check(package, False, "not installed", "pip install keju", optional=False)
    for extra in extras:
        missing = extra.missing
        state = f"lacks {', '.join(missing)}" if missing else "installed"
        remedy = f"{extra.remedy}  ({extra.about})" if missing else ""
        yield Check(f"extra {extra.name}", not missing, state, remedy)


def _data(flag: str | None) -> Iterator[Check]:
    from keju.cli.common import all_benchmarks
    from keju.config.load import data_folder

    path = data_folder(flag)
    if path is None:
        remedy = "give --data-dir DIR or set KEJU_DATA_DIR"
        yield Check("data folder", False, "not named", remedy)
        return
    folder = Path(path)
    remedy = "" if folder.is_dir() else "name a folder that exists"
    yield Check("data folder", folder.is_dir(), str(folder), remedy, optional=flag is None)
    names = [each.name for each in all_benchmarks() if each.layout]
    for name in names if folder.is_dir() else ():
        there = (folder / name).is_dir()
        remedy = "" if there else f"keju data pull {name}"
        yield Check(f"data {name}", there, str(folder / name) if there else "not there", remedy)


def _folders(work_dir: str | None) -> Iterator[Check]:
    from keju.config.load import runs_folder
    from keju.sources.fetch import cache_root

    for name, folder, choice in (
        ("cache folder", cache_root(os.environ), "KEJU_CACHE_DIR"),
        ("work folder", runs_folder(work_dir), "--work-dir"),
    ):
        # Files can be made in it, or it in the nearest folder that exists.
        existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        usable = existing.is_dir() and os.access(existing, os.W_OK)
        remedy = "" if usable else f"choose another with {choice}"
        yield Check(name, usable, str(folder), remedy, optional=False)


def _sandboxes() -> Iterator[Check]:
    """Try each backend, and look for what sandboxes have left behind."""
    import asyncio

    from keju.config.arms import Sandbox as Settings
    from keju.solvers.sandbox.leftovers import leftovers
    from keju.solvers.sandbox.sandbox import Probe, Sandbox
    from keju.solvers.sandbox.supervisor import Supervisor

    async def tried() -> list[Probe]:
        async with Supervisor() as supervisor:
            chosen = [Settings.model_validate({"backend": name}) for name in names]
            return await asyncio.gather(*(Sandbox(s, supervisor).probe() for s in chosen))

    names = ("bwrap", "docker", "podman")
    for probe in asyncio.run(tried()):
        name = f"sandbox {probe.backend}"
        if probe.ok:
            with_ = probe.runtime or "without --disable-userns"
            yield Check(name, True, f"{probe.version} works ({with_})")
        elif probe.backend == "bwrap":
            remedy = "install bubblewrap (package bubblewrap) and keju[agent] to run code of models"
            yield Check(name, False, probe.problem, remedy)
        else:  # it needs an image, which only a run names
            state = f"{probe.version} answers" if probe.version else probe.problem
            yield Check(name, bool(probe.version), state)
    for left in leftovers():
        yield Check("sandbox", False, left.what, left.remedy, fault="left over")


async def _reach(api_url: str, api_key: str | None, name: str | None) -> str:
    """Ask the model for a word, or the endpoint for its list of models, which costs nothing."""
    from pydantic import SecretStr

    from keju.config import TaskConfig
    from keju.engine.channel import Channel, Limits
    from keju.models.base import refusal
    from keju.models.openai.client import HttpModel
    from keju.models.registry import fit_sampling, make_model
    from keju.models.transport import TransportError
    from keju.types import Sampling

    key = SecretStr(api_key) if api_key else None
    config = TaskConfig(
        model=name or "any", api_url=api_url, api_key=key, timeout=SECONDS, datasets=["any"]
    )
    model = make_model(config)
    assert isinstance(model, HttpModel)
    shown = model.address.shown
    limits = Limits(concurrency=1, timeout=SECONDS, attempts=1, give_up_after=SECONDS)
    channel = Channel(model, limits)
    try:
        sampling, _ = fit_sampling(config, Sampling(temperature=None))
        await channel.open([sampling] if name else ())
        if name:
            return f"{shown} answers as {model.name}"
        reply = await model.transport.get(model.address.models, SECONDS)
    except TransportError as error:
        problem = model.redact(error.message)
        raise EndpointError("cli_cannot_reach", url=shown, problem=problem) from None
    finally:
        await channel.close()
    if reply.status in (401, 403):
        raise EndpointError("cli_key_refused", url=shown, status=reply.status)
    if not 200 <= reply.status < 300:
        fault = refusal(reply.status, reply.body, reply.header, model.redact)
        values = {"url": shown, "status": reply.status, "problem": fault.message}
        raise EndpointError("cli_endpoint_answers", **values)
    return f"{shown} answers"
