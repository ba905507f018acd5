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
DATA_FOLDER = Notice("doctor_check_data_folder")
ENDPOINT = Notice("doctor_check_endpoint")
GPU = Notice("doctor_check_gpu")
MODEL = Notice("doctor_check_model")
Said = Notice | KejuError | str
"""A code of the catalogues with its values, or what needs no translation, such as a version."""
WIDEST = 80
"""Cells of a line on a terminal, however wide that is; a pipe gets lines that can be searched."""
NARROWEST_FOUND = 20
"""Cells of what was found beside its name; with less room it stands below."""


class Remedy(NamedTuple):
    """What to do where something is missing: in words, and as commands with what they are for."""

    advice: Said = ""
    steps: tuple[tuple[str, Said], ...] = ()

    def text(self, language: Language) -> str:
        """Advice and commands in one line."""
        steps = (
            Notice("doctor_step", {"command": command, "what": what}).text(language)
            if what
            else command
            for command, what in self.steps
        )
        return " ".join(filter(None, (_words(self.advice, language), "; ".join(steps))))


def _do(command: str, what: Said = "") -> Remedy:
    """A remedy that is one command."""
    return Remedy(steps=((command, what),))


NOTHING = Remedy()
AGENT = "pip install 'keju[agent]'"
BWRAP_REMEDIES = {
    "sandbox_not_installed": Remedy(
        Notice("doctor_to_run_code"),
        (("sudo apt install bubblewrap", Notice("doctor_same_name")), (AGENT, "")),
    ),
    "sandbox_no_kernel": Remedy(Notice("doctor_to_run_code"), ((AGENT, ""),)),
    "sandbox_fails": Remedy(
        Notice("doctor_allow_bwrap"),
        (
            ("sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0", "Ubuntu"),
            ("sudo sysctl kernel.unprivileged_userns_clone=1", "Debian"),
        ),
    ),
}
"""The next step, by what bubblewrap lacks."""


class Check(NamedTuple):
    """One thing that is examined."""

    name: Said
    ok: bool
    state: Said
    remedy: Remedy = NOTHING
    optional: bool = True
    exit_code: int = 2
    fault: str = "missing"
    """What is wrong, in a word."""
    told: str = ""
    """The word for people, where what is examined is not missing: programs know the other."""
    kin: str = ""
    """Where several of a kind are as they should be, people get one line of them all."""
    short: str = ""
    """What stands for it in that line."""


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
    from keju.config.address import OPENAI, provider_of, shown_url
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
            checks.append(_failed(ENDPOINT, shown_url(place), error))
    elif model is not None:
        checks.append(_model(model))
    failures = [check.exit_code for check in checks if not check.ok and not check.optional]
    return Output(
        {"checks": [dict(zip(KEYS, _row(check, "en"), strict=True)) for check in checks]},
        lambda: _show(checks),
        exit_code=failures[-1] if failures else 0,
    )


KEYS = ("name", "status", "found", "remedy")


def _failed(name: Said, what: str, error: KejuError) -> Check:
    """What the user named and cannot be used, and why."""
    code = error.exit_code
    return Check(name, False, what, Remedy(error), False, exit_code=code, told="failed")


def _row(check: Check, language: Language, *, people: bool = False) -> tuple[str, str, str, str]:
    """A check as the cells of its line; JSON is English, whatever the terminal speaks."""
    status = "ok" if check.ok else check.fault
    if people:
        word = status if check.ok else check.told or status
        status = labels(language)[f"doctor.{word}"]
    name, found = _words(check.name, language), _words(check.state, language)
    return name, status, found, check.remedy.text(language)


def _words(told: Said, language: Language) -> str:
    return told if isinstance(told, str) else told.text(language)


def _show(checks: Sequence[Check]) -> None:
    """A line for each check, below it the next step: commands stand alone, to be copied.

    What several checks in a row lead to is said once, below the last of them.
    """
    from keju.messages.wrapping import cells, pad, wrap
    from keju.report.table import Screen

    language, screen = spoken(), Screen()
    if screen.terminal:
        screen.console.width = min(screen.console.width, WIDEST)
    width = screen.console.width
    shown = list(_gathered(checks))
    rows = [_row(check, language, people=True) for check in shown]
    names = max(cells(name) for name, *_ in rows)
    indent = max(cells(status) for _, status, *_ in rows) + 2
    for place, (check, (name, status, found, _)) in enumerate(zip(shown, rows, strict=True)):
        style = None if check.ok else "yellow" if check.optional else "red"
        head = f"{pad(status, indent)}{pad(name, names)}  "
        if width - cells(head) < NARROWEST_FOUND:
            screen.raw(head.rstrip(), style)
            head = " " * indent
        for line in wrap(found, width - cells(head), cut=False):
            screen.raw(head + line, style)
            head, style = " " * cells(head), None
        if check.remedy in [following.remedy for following in shown[place + 1 : place + 2]]:
            continue
        if advice := _words(check.remedy.advice, language):
            screen.line(advice, indent=indent)
        for step, what in check.remedy.steps:
            if what:
                screen.line(_words(what, language) + said("help.colon"), indent=indent)
            screen.raw(" " * (indent + 2) + step)
    screen.flush()


def _gathered(checks: Sequence[Check]) -> Iterator[Check]:
    """The checks, with one for all of a kind that are as they should be."""
    kinds: dict[str, list[Check]] = {}
    for check in checks:
        if check.ok and check.kin:
            kinds.setdefault(check.kin, []).append(check)
    for check in checks:
        alike = kinds.get(check.kin, []) if check.ok else []
        if len(alike) < 2:
            yield check
        elif check is alike[0]:
            found = ", ".join(each.short for each in alike)
            yield Check(Notice(f"doctor_check_{check.kin}"), True, found)


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
            version = metadata.version(package)
            short = f"{package} {version}"
            kin = "" if package == "keju" else "packages"
            yield Check(package, True, version, optional=False, kin=kin, short=short)
        except metadata.PackageNotFoundError:
            state = Notice("doctor_not_installed")
            yield Check(package, False, state, _do("pip install keju"), optional=False)
    for extra in extras:
        name = Notice("doctor_check_extra", {"name": extra.name})
        if missing := extra.missing:
            state = Notice("doctor_lacks", {"modules": [*missing]})
            what = Notice(f"doctor_extra_{extra.name}")
            yield Check(name, False, state, _do(extra.remedy, what))
        else:
            state = Notice("doctor_installed")
            yield Check(name, True, state, kin="extras", short=extra.name)


def _graphics() -> Check:
    """NVIDIA's cards, as their own tool tells them, and whether torch can use them."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        asked = subprocess.run(query, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return Check(GPU, False, Notice("doctor_no_gpu"), Remedy(Notice("doctor_without_gpu")))
    cards = "; ".join(dict.fromkeys(asked.stdout.strip().splitlines()))
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = ""
    if torch.endswith("+cpu"):
        advice = Notice("doctor_torch_without_gpu", {"version": torch})
        return Check(GPU, False, cards, Remedy(advice))
    return Check(GPU, True, cards)


def _data(flag: str | None) -> Iterator[Check]:
    from keju.cli.common import all_benchmarks
    from keju.config.load import data_folder

    path = data_folder(flag)
    if path is None:
        remedy = Remedy(Notice("doctor_name_data"))
        yield Check(DATA_FOLDER, False, Notice("doctor_not_named"), remedy)
        return
    folder = Path(path)
    remedy = NOTHING if folder.is_dir() else Remedy(Notice("doctor_name_folder"))
    yield Check(DATA_FOLDER, folder.is_dir(), str(folder), remedy, optional=flag is None)
    names = [each.name for each in all_benchmarks() if each.layout]
    for name in names if folder.is_dir() else ():
        check = Notice("doctor_check_data", {"name": name})
        if (folder / name).is_dir():
            yield Check(check, True, str(folder / name), kin="exams", short=name)
        else:
            yield Check(check, False, Notice("doctor_not_there"), _do(f"keju data pull {name}"))


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
            return Check(name, False, state, Remedy(Notice("doctor_without_hub")))
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
        remedy = Remedy(Notice("doctor_choose_folder", {"setting": choice}))
        yield Check(name, usable, str(folder), NOTHING if usable else remedy, optional=False)


def _sandboxes() -> Iterator[Check]:
    """Try each backend, and look for what sandboxes have left behind."""
    from keju.config.arms import Sandbox as Settings
    from keju.solvers.sandbox.leftovers import find_leftovers
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
            yield Check(name, False, problem, BWRAP_REMEDIES.get(problem.code, NOTHING))
        elif probe.version:  # it needs an image, which only a run names
            yield Check(name, True, Notice("doctor_answers", {"place": probe.version}))
        else:
            problem = probe.problem or Notice("doctor_no")
            yield Check(name, False, problem, Remedy(Notice("doctor_without_containers")))
    every = Notice("doctor_check_sandboxes")
    for left in find_leftovers():
        yield Check(every, False, left.what, _do(left.remedy), fault="left over")


def _model(name: str) -> Check:
    """Whether a model that was named without an address can be made here."""
    from keju.config import TaskConfig
    from keju.models.registry import make_model

    try:
        made = make_model(TaskConfig(model=name, datasets=["any"]))
    except KejuError as error:
        return _failed(MODEL, name, error)
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
