"""``keju doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from keju.cli.command import command
from keju.cli.common import Output
from keju.errors import EndpointError, KejuError, Notice
from keju.messages import Language, labels, said, spoken

CORE = ("keju", "jinja2", "msgspec", "pydantic", "pyreqwest", "pyyaml", "rich", "typer")
SECONDS = 10.0
HUB_SECONDS = 4.0
"""A hub that has not answered by then is as good as out of reach for now."""
BWRAP_REMEDIES = {
    "sandbox_not_installed": Notice("doctor_install_bwrap"),
    "sandbox_no_kernel": Notice("doctor_install_kernel"),
    "sandbox_fails": Notice("doctor_allow_bwrap"),
}
"""The next step, by what bubblewrap lacks."""
DATA_FOLDER = Notice("doctor_check_data_folder")
ENDPOINT = Notice("doctor_check_endpoint")
GPU = Notice("doctor_check_gpu")
MODEL = Notice("doctor_check_model")
Said = Notice | KejuError | str
"""A code of the catalogues with its values, or what needs no translation, such as a version."""


class Check(NamedTuple):
    """One line of the examination."""

    name: Said
    ok: bool
    state: Said
    remedy: Said = ""
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
    """Examine the installation: versions, optional parts, GPU, data, hubs, sandboxes, endpoint."""
    checks = [
        *_software(),
        _graphics(),
        *_data(data_dir),
        *asyncio.run(_hubs()),
        *_folders(work_dir),
        *_sandboxes(),
    ]
    from keju.config.address import OPENAI, provider_of
    from keju.models.registry import is_local

    provider = provider_of(model)
    if model is not None and not is_local(model):
        api_url = api_url or os.environ.get(provider.url_variable)
    if api_url is not None or provider != OPENAI:  # the others have an address of their own
        variables = ("KEJU_API_KEY", provider.key_variable)
        key = api_key or next(filter(None, map(os.environ.get, variables)), None)
        place = api_url or provider.home
        try:
            checks.append(Check(ENDPOINT, True, asyncio.run(_reach(place, key, model))))
        except KejuError as error:
            code, lack = error.exit_code, Notice("doctor_no")
            checks.append(Check(ENDPOINT, False, lack, error, False, exit_code=code))
    elif model is not None:
        checks.append(_model(model))
    failures = [check.exit_code for check in checks if not check.ok and not check.optional]
    return Output(
        {"checks": [dict(zip(KEYS, _row(check, "en"), strict=True)) for check in checks]},
        lambda: _show(checks),
        exit_code=failures[-1] if failures else 0,
    )


KEYS = ("name", "status", "found", "remedy")


def _row(check: Check, language: Language) -> tuple[str, ...]:
    """A check as the cells of its line; JSON is English, whatever the terminal speaks."""
    status = "ok" if check.ok else check.fault
    if language != "en":
        status = labels(language)[f"doctor.{status}"]
    words = (check.name, check.state, check.remedy)
    name, *told = (x if isinstance(x, str) else x.text(language) for x in words)
    return name, status, *told


def _show(checks: Sequence[Check]) -> None:
    from keju.report.table import Column, render_table

    titles = [said(f"doctor.{key}") for key in KEYS]
    columns = [Column(title, fold=place > 1) for place, title in enumerate(titles)]
    render_table(columns, [_row(check, spoken()) for check in checks])


def _software() -> Iterator[Check]:
    from keju.models.registry import KINDS, Extra

    extras = (
        Extra("data", ("duckdb", "huggingface_hub")),
        *dict.fromkeys(kind.extra for kind in KINDS if kind.extra is not None),
        Extra("fast", ("uvloop",)),
        Extra("logs", ("zstandard",)),
        Extra("mcp", ("mcp",)),
        Extra("agent", ("ipykernel",)),
        Extra("otel", ("opentelemetry.sdk",)),
        Extra("plot", ("vl_convert",)),
        Extra("storage", ("fsspec",)),
        Extra("view", ("starlette", "uvicorn")),
        Extra("ray", ("ray",)),
    )
    yield Check("python", True, platform.python_version())
    for package in CORE:
        try:
            yield Check(package, True, metadata.version(package), optional=False)
        except metadata.PackageNotFoundError:
            state = Notice("doctor_not_installed")
            yield Check(package, False, state, "pip install keju", optional=False)
    for extra in extras:
        name = Notice("doctor_check_extra", {"name": extra.name})
        if missing := extra.missing:
            state = Notice("doctor_lacks", {"modules": ", ".join(missing)})
            what = Notice(f"doctor_extra_{extra.name}")
            remedy = Notice("doctor_extra", {"command": extra.remedy, "what": what})
            yield Check(name, False, state, remedy)
        else:
            yield Check(name, True, Notice("doctor_installed"))


def _graphics() -> Check:
    """NVIDIA's cards, as their own tool tells them, and whether torch can use them."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        asked = subprocess.run(query, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return Check(GPU, False, Notice("doctor_no_gpu"), Notice("doctor_without_gpu"))
    cards = "; ".join(dict.fromkeys(asked.stdout.strip().splitlines()))
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = ""
    if torch.endswith("+cpu"):
        return Check(GPU, False, cards, Notice("doctor_torch_without_gpu", {"version": torch}))
    return Check(GPU, True, cards)


def _data(flag: str | None) -> Iterator[Check]:
    from keju.cli.common import all_benchmarks
    from keju.config.load import data_folder

    path = data_folder(flag)
    if path is None:
        yield Check(DATA_FOLDER, False, Notice("doctor_not_named"), Notice("doctor_name_data"))
        return
    folder = Path(path)
    remedy = "" if folder.is_dir() else Notice("doctor_name_folder")
    yield Check(DATA_FOLDER, folder.is_dir(), str(folder), remedy, optional=flag is None)
    names = [each.name for each in all_benchmarks() if each.layout]
    for name in names if folder.is_dir() else ():
        check = Notice("doctor_check_data", {"name": name})
        if (folder / name).is_dir():
            yield Check(check, True, str(folder / name))
        else:
            yield Check(check, False, Notice("doctor_not_there"), f"keju data pull {name}")


async def _hubs() -> list[Check]:
    """Whether data and weights can be brought from where they are published."""
    from keju.models.transport import Transport, TransportError
    from keju.sources import huggingface, modelscope

    hubs = {
        "huggingface": huggingface.endpoint(os.environ),
        "modelscope": modelscope.endpoint(os.environ),
    }
    transport = Transport()

    async def check(hub: str, place: str) -> Check:
        name = Notice("doctor_check_hub", {"name": hub})
        try:
            await transport.get(place, HUB_SECONDS)
        except TransportError as error:
            state = Notice("doctor_hub_out", {"place": place, "problem": error.message})
            return Check(name, False, state, Notice("doctor_without_hub"))
        return Check(name, True, Notice("doctor_answers", {"place": place}))

    try:
        return await asyncio.gather(*(check(hub, place) for hub, place in hubs.items()))
    finally:
        await transport.close()


def _folders(work_dir: str | None) -> Iterator[Check]:
    from keju.config.load import runs_folder
    from keju.sources.fetch import cache_root

    for name, folder, choice in (
        (Notice("doctor_check_cache_folder"), cache_root(os.environ), "KEJU_CACHE_DIR"),
        (Notice("doctor_check_work_folder"), runs_folder(work_dir), "--work-dir"),
    ):
        # Files can be made in it, or it in the nearest folder that exists.
        existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        usable = existing.is_dir() and os.access(existing, os.W_OK)
        remedy = "" if usable else Notice("doctor_choose_folder", {"setting": choice})
        yield Check(name, usable, str(folder), remedy, optional=False)


def _sandboxes() -> Iterator[Check]:
    """Try each backend, and look for what sandboxes have left behind."""
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
        name = Notice("doctor_check_sandbox", {"name": probe.backend})
        if probe.ok:
            with_ = probe.runtime or Notice("doctor_userns_stay")
            state = Notice("doctor_sandbox", {"version": probe.version, "with_": with_})
            yield Check(name, True, state)
        elif probe.backend == "bwrap":
            problem = probe.problem or Notice("doctor_no")
            yield Check(name, False, problem, BWRAP_REMEDIES.get(problem.code, ""))
        elif probe.version:  # it needs an image, which only a run names
            yield Check(name, True, Notice("doctor_answers", {"place": probe.version}))
        else:
            problem = probe.problem or Notice("doctor_no")
            yield Check(name, False, problem, Notice("doctor_without_containers"))
    every = Notice("doctor_check_sandboxes")
    for left in leftovers():
        yield Check(every, False, left.what, left.remedy, fault="left over")


def _model(name: str) -> Check:
    """Whether a model that was named without an address can be made here."""
    from keju.config import TaskConfig
    from keju.models.registry import make_model

    try:
        made = make_model(TaskConfig(model=name, datasets=["any"]))
    except KejuError as error:
        return Check(MODEL, False, Notice("doctor_no"), error, False, error.exit_code)
    return Check(MODEL, True, Notice("doctor_model", {"name": made.name}))


async def _reach(api_url: str, api_key: str | None, name: str | None) -> Notice:
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
            return Notice("doctor_answers_as", {"place": shown, "model": model.name})
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
    return Notice("doctor_answers", {"place": shown})
