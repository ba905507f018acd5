"""``keju doctor``: shows installed and missing parts, and how to fix problems."""

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
from keju.cli.common import CommandOutput
from keju.errors import EndpointError, KejuError, Notice
from keju.messages import Language, current_language, label_text, labels

CORE = ("keju", "jinja2", "msgspec", "pydantic", "pyreqwest", "pyyaml", "rich", "typer")
SECONDS = 10.0
HUB_SECONDS = 4.0
"""Seconds after which a hub counts as unreachable."""
DATA_FOLDER = Notice("doctor_check_data_folder")
ENDPOINT = Notice("doctor_check_endpoint")
GPU = Notice("doctor_check_gpu")
MODEL = Notice("doctor_check_model")
Wording = Notice | KejuError | str
"""A code of the catalogues with its values, or a text without translation, such as a version."""
WIDEST = 80
"""The most cells of a line on a terminal of any width. A pipe gets unwrapped lines for searching.
"""
NARROWEST_STATE = 20
"""The fewest cells for a check's state next to its name. With less room it goes below the name."""


class Remedy(NamedTuple):
    """The next step if something is missing: advice, and commands with their purpose."""

    advice: Wording = ""
    steps: tuple[tuple[str, Wording], ...] = ()

    def text(self, language: Language) -> str:
        """Return advice and commands in one line."""
        steps = (
            Notice("doctor_step", {"command": command, "what": what}).text(language)
            if what
            else command
            for command, what in self.steps
        )
        return " ".join(filter(None, (_translate(self.advice, language), "; ".join(steps))))


def _command_remedy(command: str, what: Wording = "") -> Remedy:
    """Return a remedy that is one command."""
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
"""The next step, by the problem with bubblewrap."""


class DoctorCheck(NamedTuple):
    """The result of one check."""

    name: Wording
    ok: bool
    state: Wording
    remedy: Remedy = NOTHING
    optional: bool = True
    exit_code: int = 2
    fault: str = "missing"
    """The problem in one word, for programs."""
    display_fault: str = ""
    """The problem in one word for people, if it differs."""
    group_name: str = ""
    """Passed checks of the same group become one line for people."""
    short_name: str = ""
    """The name in that line."""


@command(
    "doctor",
    "keju doctor",
    "keju doctor --api-url http://localhost:8000/v1 --model NAME",
    "keju doctor --data-dir data --json",
    "keju doctor --verify --data-dir data",
    forms="verify",
)
def doctor(
    data_dir: str | None,
    work_dir: str | None,
    model: str | None,
    api_url: str | None,
    api_key: str | None,
) -> CommandOutput:
    """Examine the installation: versions, optional parts, GPU, data, hubs, sandboxes, endpoint."""
    checks = [
        *_check_software(),
        _check_graphics(),
        *_check_data(data_dir),
        *asyncio.run(_check_hubs()),
        *_check_folders(work_dir),
        *_check_sandboxes(),
    ]
    from keju.config.address import OPENAI, find_provider, strip_credentials
    from keju.models.registry import is_local

    provider = find_provider(model)
    if model is not None and not is_local(model):
        api_url = api_url or os.environ.get(provider.url_variable)
    if api_url is not None or provider != OPENAI:  # the other providers have a default address
        variables = ("KEJU_API_KEY", provider.key_variable)
        key = api_key or next(filter(None, map(os.environ.get, variables)), None)
        place = api_url or provider.home
        try:
            checks.append(
                DoctorCheck(ENDPOINT, True, asyncio.run(_ask_endpoint(place, key, model)))
            )
        except KejuError as error:
            checks.append(_failed_check(ENDPOINT, strip_credentials(place), error))
    elif model is not None:
        checks.append(_check_model(model))
    failures = [check.exit_code for check in checks if not check.ok and not check.optional]
    return CommandOutput(
        {"checks": [dict(zip(KEYS, _check_cells(check, "en"), strict=True)) for check in checks]},
        lambda: _show(checks),
        exit_code=failures[-1] if failures else 0,
    )


KEYS = ("name", "status", "found", "remedy")


def _failed_check(name: Wording, what: str, error: KejuError) -> DoctorCheck:
    """Return the failed check of a part that the user named, with the reason."""
    code = error.exit_code
    return DoctorCheck(
        name, False, what, Remedy(error), False, exit_code=code, display_fault="failed"
    )


def _check_cells(
    check: DoctorCheck, language: Language, *, is_for_people: bool = False
) -> tuple[str, str, str, str]:
    """Return a check as the cells of its line. JSON is always English."""
    status = "ok" if check.ok else check.fault
    if is_for_people:
        word = status if check.ok else check.display_fault or status
        status = labels(language)[f"doctor.{word}"]
    name, state = _translate(check.name, language), _translate(check.state, language)
    return name, status, state, check.remedy.text(language)


def _translate(wording: Wording, language: Language) -> str:
    return wording if isinstance(wording, str) else wording.text(language)


def _show(checks: Sequence[DoctorCheck]) -> None:
    """Print a line for each check with the next steps below it. Commands get their own lines.

    Consecutive checks with the same remedy show it only once, below the last of them.
    """
    from keju.messages.wrapping import cells, pad, wrap
    from keju.reporting.table import TerminalScreen

    language, screen = current_language(), TerminalScreen()
    if screen.terminal:
        screen.console.width = min(screen.console.width, WIDEST)
    width = screen.console.width
    displayed_checks = list(_group_checks(checks))
    rows = [_check_cells(check, language, is_for_people=True) for check in displayed_checks]
    names = max(cells(name) for name, *_ in rows)
    indent = max(cells(status) for _, status, *_ in rows) + 2
    for position, (check, (name, status, state, _)) in enumerate(
        zip(displayed_checks, rows, strict=True)
    ):
        style = None if check.ok else "yellow" if check.optional else "red"
        head = f"{pad(status, indent)}{pad(name, names)}  "
        if width - cells(head) < NARROWEST_STATE:
            screen.raw(head.rstrip(), style)
            head = " " * indent
        for line in wrap(state, width - cells(head), cut=False):
            screen.raw(head + line, style)
            head, style = " " * cells(head), None
        if check.remedy in [
            following.remedy for following in displayed_checks[position + 1 : position + 2]
        ]:
            continue
        if advice := _translate(check.remedy.advice, language):
            screen.line(advice, indent=indent)
        for step, what in check.remedy.steps:
            if what:
                screen.line(_translate(what, language) + label_text("help.colon"), indent=indent)
            screen.raw(" " * (indent + 2) + step)
    screen.flush()


def _group_checks(checks: Sequence[DoctorCheck]) -> Iterator[DoctorCheck]:
    """Yield the checks, with all passed checks of a group as one."""
    groups: dict[str, list[DoctorCheck]] = {}
    for check in checks:
        if check.ok and check.group_name:
            groups.setdefault(check.group_name, []).append(check)
    for check in checks:
        group = groups.get(check.group_name, []) if check.ok else []
        if len(group) < 2:
            yield check
        elif check is group[0]:
            short_names = ", ".join(member.short_name for member in group)
            yield DoctorCheck(Notice(f"doctor_check_{check.group_name}"), True, short_names)


def _check_software() -> Iterator[DoctorCheck]:
    from keju.models.registry import KINDS, OptionalExtra

    extras = (
        OptionalExtra("data", ("duckdb", "huggingface_hub")),
        *dict.fromkeys(kind.extra for kind in KINDS if kind.extra is not None),
        OptionalExtra("fast", ("uvloop",)),
        OptionalExtra("logs", ("zstandard",)),
        OptionalExtra("mcp", ("mcp",)),
        OptionalExtra("agent", ("ipykernel",)),
        OptionalExtra("otel", ("opentelemetry.sdk",)),
        OptionalExtra("plot", ("vl_convert",)),
        OptionalExtra("storage", ("fsspec",)),
        OptionalExtra("view", ("starlette", "uvicorn")),
        OptionalExtra("ray", ("ray",)),
    )
    yield DoctorCheck("python", True, platform.python_version())
    for package in CORE:
        try:
            version = metadata.version(package)
            short = f"{package} {version}"
            kin = "" if package == "keju" else "packages"
            yield DoctorCheck(
                package, True, version, optional=False, group_name=kin, short_name=short
            )
        except metadata.PackageNotFoundError:
            state = Notice("doctor_not_installed")
            yield DoctorCheck(
                package, False, state, _command_remedy("pip install keju"), optional=False
            )
    for extra in extras:
        name = Notice("doctor_check_extra", {"name": extra.name})
        if missing := extra.missing:
            state = Notice("doctor_lacks", {"modules": [*missing]})
            what = Notice(f"doctor_extra_{extra.name}")
            yield DoctorCheck(name, False, state, _command_remedy(extra.remedy, what))
        else:
            state = Notice("doctor_installed")
            yield DoctorCheck(name, True, state, group_name="extras", short_name=extra.name)


def _check_graphics() -> DoctorCheck:
    """Check NVIDIA's cards with nvidia-smi, and whether torch can use them."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        output = subprocess.run(query, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return DoctorCheck(
            GPU, False, Notice("doctor_no_gpu"), Remedy(Notice("doctor_without_gpu"))
        )
    cards = "; ".join(dict.fromkeys(output.stdout.strip().splitlines()))
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = ""
    if torch.endswith("+cpu"):
        advice = Notice("doctor_torch_without_gpu", {"version": torch})
        return DoctorCheck(GPU, False, cards, Remedy(advice))
    return DoctorCheck(GPU, True, cards)


def _check_data(flag: str | None) -> Iterator[DoctorCheck]:
    from keju.cli.common import all_benchmarks
    from keju.config.load import data_folder

    path = data_folder(flag)
    if path is None:
        remedy = Remedy(Notice("doctor_name_data"))
        yield DoctorCheck(DATA_FOLDER, False, Notice("doctor_not_named"), remedy)
        return
    folder = Path(path)
    remedy = NOTHING if folder.is_dir() else Remedy(Notice("doctor_name_folder"))
    yield DoctorCheck(DATA_FOLDER, folder.is_dir(), str(folder), remedy, optional=flag is None)
    names = [benchmark.name for benchmark in all_benchmarks() if benchmark.layout]
    for name in names if folder.is_dir() else ():
        check = Notice("doctor_check_data", {"name": name})
        if (folder / name).is_dir():
            yield DoctorCheck(check, True, str(folder / name), group_name="exams", short_name=name)
        else:
            yield DoctorCheck(
                check, False, Notice("doctor_not_there"), _command_remedy(f"keju data pull {name}")
            )


async def _check_hubs() -> list[DoctorCheck]:
    """Check whether the hubs for data and weights are reachable."""
    from keju.models.transport import Transport, TransportError
    from keju.sources import huggingface, modelscope

    hubs = {
        "huggingface": huggingface.endpoint(os.environ),
        "modelscope": modelscope.endpoint(os.environ),
    }
    transport = Transport()

    async def check(hub: str, place: str) -> DoctorCheck:
        name = Notice("doctor_check_hub", {"name": hub})
        try:
            await transport.get(place, HUB_SECONDS)
        except TransportError as error:
            state = Notice("doctor_hub_out", {"place": place, "problem": error.message})
            return DoctorCheck(name, False, state, Remedy(Notice("doctor_without_hub")))
        return DoctorCheck(name, True, Notice("doctor_answers", {"place": place}))

    try:
        return await asyncio.gather(*(check(hub, place) for hub, place in hubs.items()))
    finally:
        await transport.close()


def _check_folders(work_dir: str | None) -> Iterator[DoctorCheck]:
    from keju.config.load import runs_folder
    from keju.sources.fetch import cache_root

    for name, folder, choice in (
        (Notice("doctor_check_cache_folder"), cache_root(os.environ), "KEJU_CACHE_DIR"),
        (Notice("doctor_check_work_folder"), runs_folder(work_dir), "--work-dir"),
    ):
        # Files can be made in the folder, or the folder in its nearest existing parent.
        existing = next(
            candidate for candidate in (folder, *folder.absolute().parents) if candidate.exists()
        )
        is_writable = existing.is_dir() and os.access(existing, os.W_OK)
        remedy = Remedy(Notice("doctor_choose_folder", {"setting": choice}))
        yield DoctorCheck(
            name, is_writable, str(folder), NOTHING if is_writable else remedy, optional=False
        )


def _check_sandboxes() -> Iterator[DoctorCheck]:
    """Try each backend, and look for remnants of old sandboxes."""
    from keju.config.arms import SandboxSettings as Settings
    from keju.solvers.sandbox.orphan_cleanup import find_leftovers
    from keju.solvers.sandbox.sandbox import BackendProbe, Sandbox
    from keju.solvers.sandbox.supervisor import Supervisor

    async def probe_sandboxes() -> list[BackendProbe]:
        async with Supervisor() as supervisor:
            sandbox_settings = [Settings.model_validate({"backend": name}) for name in names]
            return await asyncio.gather(*(Sandbox(s, supervisor).probe() for s in sandbox_settings))

    names = ("bwrap", "docker", "podman")
    for probe in asyncio.run(probe_sandboxes()):
        name = Notice("doctor_check_sandbox", {"name": probe.backend})
        if probe.ok:
            runtime = probe.runtime or Notice("doctor_userns_stay")
            state = Notice("doctor_sandbox", {"version": probe.version, "with_": runtime})
            yield DoctorCheck(name, True, state)
        elif probe.backend == "bwrap":
            problem = probe.problem or Notice("doctor_no")
            yield DoctorCheck(name, False, problem, BWRAP_REMEDIES.get(problem.code, NOTHING))
        elif probe.version:  # it needs an image, which only a run names
            yield DoctorCheck(name, True, Notice("doctor_answers", {"place": probe.version}))
        else:
            problem = probe.problem or Notice("doctor_no")
            yield DoctorCheck(name, False, problem, Remedy(Notice("doctor_without_containers")))
    check_name = Notice("doctor_check_sandboxes")
    for remnant in find_leftovers():
        yield DoctorCheck(
            check_name, False, remnant.what, _command_remedy(remnant.remedy), fault="left over"
        )


def _check_model(name: str) -> DoctorCheck:
    """Check whether a model without an address can be made on this machine."""
    from keju.config import TaskConfig
    from keju.models.registry import make_model

    try:
        model = make_model(TaskConfig(model=name, datasets=["any"]))
    except KejuError as error:
        return _failed_check(MODEL, name, error)
    return DoctorCheck(MODEL, True, Notice("doctor_model", {"name": model.name}))


async def _ask_endpoint(api_url: str, api_key: str | None, name: str | None) -> Notice:
    """Ask the model for a word. Without a model, ask for the list of models, which is free."""
    from pydantic import SecretStr

    from keju.config import TaskConfig
    from keju.engine.channel import Channel, ChannelLimits
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
    display_url = model.address.display_url
    limits = ChannelLimits(concurrency=1, timeout=SECONDS, attempts=1, give_up_after=SECONDS)
    channel = Channel(model, limits)
    try:
        sampling, _ = fit_sampling(config, Sampling(temperature=None))
        await channel.open([sampling] if name else ())
        if name:
            return Notice("doctor_answers_as", {"place": display_url, "model": model.name})
        reply = await model.transport.get(model.address.models, SECONDS)
    except TransportError as error:
        problem = model.redact(error.message)
        raise EndpointError("cli_cannot_reach", url=display_url, problem=problem) from None
    finally:
        await channel.close()
    if reply.status in (401, 403):
        raise EndpointError("cli_key_refused", url=display_url, status=reply.status)
    if not 200 <= reply.status < 300:
        fault = refusal(reply.status, reply.body, reply.header, model.redact)
        values = {"url": display_url, "status": reply.status, "problem": fault.message}
        raise EndpointError("cli_endpoint_answers", **values)
    return Notice("doctor_answers", {"place": display_url})
