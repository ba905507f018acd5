"""Recorded runs: which there are, how one is laid out, and what the commands say about it.

The runs of one version of Keju are in one folder of `tests`, such as `tests/runs01`. Each run has a
folder `NAME` there: `NAME/run` is the run folder as that version wrote it, and the files next to it
hold what that version said about the run. Two words in these files replace what differs from
machine to machine: ``@ROOT@`` is the folder in which `keju` was called, which holds `data/`,
`tools/` and `runs/`; ``@ENDPOINT@`` is the address of the model.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from tests.support.endpoint import FaultyEndpoint
from tests.support.recorded_replies import KNOCK, reply
from tests.support.replies import Answerer, EndpointRequest, Plan

TESTS = Path(__file__).parent.parent
DATA = TESTS / "runs01" / "data"
"""The questions of all recorded runs; `tests/runs01/questions.py` made them up."""
IMPORTED_LOG = TESTS / "interop" / "imports" / "fixtures" / "evalscope"
IMPORTED_DATA = TESTS / "interop" / "imports" / "fixtures" / "data"
MCP_SERVER = TESTS / "support" / "mcp_server.py"
ROOT, ENDPOINT = "@ROOT@", "@ENDPOINT@"


def dataset_args(**settings: Any) -> tuple[str, str]:
    """The flag ``--dataset-args`` with settings by benchmark."""
    return "--dataset-args", json.dumps(settings)


@dataclass(frozen=True)
class RecordedCase:
    """One recorded run."""

    name: str
    flags: tuple[str, ...] = ()
    """Of `keju eval`, apart from the model, its address, the data and the run."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """How the endpoint behaves while the run is recorded and when it is resumed."""
    at_first: Mapping[str, Any] = field(default_factory=dict)
    """Changes of `plan` while the run is recorded."""
    model: str = "tiny"
    judged: bool = False
    resumes: bool = True
    """Whether `keju eval` can resume the run; it cannot resume an import."""
    origin: Literal["eval", "killed", "import", "merge", "matrix", "cell"] = "eval"
    """How the run is made; the matrix makes its cells."""
    parts: tuple[str, ...] = ()
    """Other recorded runs that this one was made of or needs."""
    total: int | None = None
    """The number of questions of a run that has some left to ask."""
    baseline: str | None = None
    """The run with which this one is compared and against which it is gated."""


class CommandOutput(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    out: str


class Finished(Protocol):
    """A command that has ended."""

    @property
    def code(self) -> int: ...
    @property
    def out(self) -> str: ...


Keju = Callable[..., Finished]
"""Runs ``keju ARGV...`` in the folder in which a run was laid out."""


class Change(NamedTuple):
    """Values of recorded runs that are no longer the same."""

    run: str
    """The run's name; `*` in it stands for any text."""
    path: str
    """Where in the results or in the export, such as `*/metrics/accuracy/value`."""
    reason: str
    """What was wrong in the version that recorded the run."""


class Served:
    """An endpoint that keeps what it was asked."""

    def __init__(
        self, case: RecordedCase, answers: Answerer = reply, *, is_first: bool = False
    ) -> None:
        self.requests: list[EndpointRequest] = []
        self._answers = answers
        settings = {**case.plan, **(case.at_first if is_first else {})}
        self.endpoint = FaultyEndpoint(Plan(answers=self._answer, **settings))

    def _answer(self, request: EndpointRequest) -> str | dict[str, Any]:
        self.requests.append(request)
        return self._answers(request)

    @property
    def counts(self) -> dict[str, int]:
        """The number of questions, and of calls that only checked the endpoint."""
        knocks = sum(request.text == KNOCK for request in self.requests)
        return {"questions": len(self.requests) - knocks, "knocks": knocks}


VOLATILE = frozenset({"timing", "complete"})
"""Keys that are not compared: times, and what `keju score` does not say."""


@dataclass(frozen=True)
class Recordings:
    """The recorded runs of one version of Keju."""

    folder: Path
    cases: tuple[RecordedCase, ...]
    changes: tuple[Change, ...] = ()
    """What later versions say differently."""
    reworded: Callable[[str], str] = str
    """How a warning of that version begins today."""
    answers: Answerer = reply

    def __getitem__(self, name: str) -> RecordedCase:
        return next(case for case in self.cases if case.name == name)

    def names(self, condition: Callable[[RecordedCase], object] = bool) -> list[str]:
        """The names of the cases for which `wanted` is true."""
        return [case.name for case in self.cases if condition(case)]

    def is_scored(self, case: RecordedCase) -> bool:
        """Whether the run is one for `keju score`: a matrix is a set of runs."""
        return case.origin != "matrix"

    def has_results(self, case: RecordedCase) -> bool:
        """Whether the version wrote results; it did not where it was killed before."""
        return (self.folder / case.name / "run" / "results.json").exists()

    def results(self, case: RecordedCase) -> Any:
        """The results that the version wrote; None where it was killed before."""
        path = self.folder / case.name / "run" / "results.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def prepare(self, case: RecordedCase, root: Path, url: str) -> None:
        """Copy what a run needs below `root`: questions, tools, further files."""
        shutil.copytree(IMPORTED_DATA if case.origin == "import" else DATA, root / "data")
        (root / "tools").mkdir()
        shutil.copy(MCP_SERVER, root / "tools")
        if (self.folder / "files").exists():
            shutil.copytree(self.folder / "files", root, dirs_exist_ok=True)
            for path in (self.folder / "files").glob("*.yaml"):
                _fill(root / path.name, root, url)

    def lay(self, case: RecordedCase, root: Path, url: str) -> None:
        """Copy a recorded run, the runs that it needs and its data below `root`."""
        self.prepare(case, root, url)
        needed_cases = {*case.parts, *([case.baseline] if case.baseline else [])}
        self.copy_runs((case.name, *needed_cases), root, url)

    def copy_runs(self, names: Iterable[str], root: Path, url: str) -> None:
        """Copy recorded runs below `root`."""
        for name in names:
            folder = root / "runs" / name
            shutil.copytree(self.folder / name / "run", folder)
            for path in folder.rglob("*"):
                if path.is_file():
                    _fill(path, root, url)

    def is_declared(self, run: str, path: str) -> bool:
        """Whether a value of a run is known to have changed."""
        return any(fnmatchcase(run, c.run) and fnmatchcase(path, c.path) for c in self.changes)

    def differences(self, run: str, recorded: Any, current: Any, place: str = "") -> list[str]:
        """List what was recorded of a run and is now missing or different.

        New keys do not count, nor does what `changes` declares. Lists have as many entries as
        before, except for warnings and notices: there may be more of them.
        """
        if self.is_declared(run, place):
            return []
        if isinstance(recorded, dict) and isinstance(current, dict):
            return list(self._lost_keys(run, recorded, current, place))
        if isinstance(recorded, list) and isinstance(current, list):
            if place.endswith("/warnings"):
                return list(self._lost_warnings(run, recorded, current, place))
            if place.endswith("/notices"):
                return list(self._lost_notices(run, recorded, current, place))
            if len(recorded) == len(current):
                pairs = enumerate(zip(recorded, current, strict=True))
                return [
                    line
                    for n, pair in pairs
                    for line in self.differences(run, *pair, f"{place}/{n}")
                ]
        is_equal = recorded == current
        if isinstance(recorded, float) and isinstance(current, int | float):
            is_equal = math.isclose(recorded, current, rel_tol=1e-9, abs_tol=1e-12)
        return [] if is_equal else [f"{place}: {recorded!r} became {current!r}"]

    def _lost_keys(
        self, run: str, recorded: dict[str, Any], current: dict[str, Any], place: str
    ) -> Iterator[str]:
        for key in recorded.keys() - VOLATILE:
            where = f"{place}/{key}"
            if key in current:
                yield from self.differences(run, recorded[key], current[key], where)
            elif not self.is_declared(run, where):
                yield f"{where} is gone"

    def _lost_warnings(
        self, run: str, recorded: list[str], current: list[str], place: str
    ) -> Iterator[str]:
        for n, words in enumerate(recorded):
            is_present = any(line.startswith(self.reworded(words)) for line in current)
            if not is_present and not self.is_declared(run, f"{place}/{n}"):
                yield f"{place}: {words!r} is gone"

    def _lost_notices(
        self, run: str, recorded: list[Any], current: list[Any], place: str
    ) -> Iterator[str]:
        for n, notice in enumerate(recorded):
            where = f"{place}/{n}"
            if all(
                self.differences(run, notice, current_notice, where) for current_notice in current
            ):
                yield f"{where}: {notice!r} is gone"


def _fill(path: Path, root: Path, url: str) -> None:
    """Put this machine's folder and address into a recorded file."""
    text = path.read_bytes().replace(ROOT.encode(), str(root).encode())
    path.write_bytes(text.replace(ENDPOINT.encode(), url.encode()))


@dataclass
class LaidRun:
    """A copy of a recorded run below `root`, the endpoint of its manifest, and the commands."""

    recordings: Recordings
    case: RecordedCase
    root: Path
    served: Served

    @property
    def folder(self) -> Path:
        return self.root / "runs" / self.case.name

    def recorded(self, what: str) -> Any:
        """Return what the version said, with the results."""
        document = json.loads(
            (self.recordings.folder / self.case.name / f"{what}.json").read_bytes()
        )
        return {"results": self.recordings.results(self.case)} | document

    def differences(self, recorded: Any, current: Any, place: str = "") -> list[str]:
        """List what was recorded of this run and is now missing or different."""
        return self.recordings.differences(self.case.name, recorded, current, place)

    def score(self, keju: Keju) -> Any:
        """``keju score``: the score of the stored replies."""
        return self._document(keju("score", f"runs/{self.case.name}", "--json"))

    def export(self, keju: Keju, form: str) -> str:
        """``keju export``: a row for each record."""
        ran = keju("export", f"runs/{self.case.name}", "--format", form)
        assert ran.code == 0
        return ran.out

    def resume(self, keju: Keju) -> Any:
        """``keju eval --resume``, for a matrix its task file: what was asked, and the results."""
        name = self.case.name
        if self.case.origin == "matrix":
            argv: tuple[str, ...] = ("--config", f"{name}.yaml")
        else:
            argv = ("--config", f"runs/{name}/manifest.json", "--resume")
        ran = keju("eval", *argv, "--json", "-q", "--no-report")
        return {**self.served.counts, **self._document(ran)}

    def judge(self, keju: Keju) -> Any:
        """``keju judge``: what was asked, and the results."""
        ran = keju("judge", f"runs/{self.case.name}", "--json", "-q", "--no-report")
        return {**self.served.counts, **self._document(ran)}

    def compare(self, keju: Keju) -> Any:
        """``keju compare`` with the baseline."""
        return self._document(
            keju("compare", f"runs/{self.case.baseline}", f"runs/{self.case.name}", "--json")
        )

    def gate(self, keju: Keju) -> Any:
        """``keju gate`` against the baseline, with a margin of ten points."""
        options = ("--baseline", f"runs/{self.case.baseline}", "--margin", "0.1")
        return self._document(keju("gate", f"runs/{self.case.name}", *options, "--json"))

    def codes(self, keju: Keju) -> Any:
        """The exit codes of the commands whose pages may change."""
        name = f"runs/{self.case.name}"
        report = keju("report", name, "-o", "page.html").code
        if self.case.origin == "matrix":
            return {"report": report}
        return {"report": report, "audit": keju("audit", name, "--json").code}

    def written(self) -> Any:
        """The results in the run's folder."""
        return self._parse((self.folder / "results.json").read_text("utf-8"))

    def _document(self, ran: Finished) -> dict[str, Any]:
        return {"code": ran.code, "results": self._parse(ran.out) if ran.out else None}

    def _parse(self, text: str) -> Any:
        """Read a document and put the placeholders into it."""
        text = text.replace(str(self.root), ROOT)
        return json.loads(text.replace(self.served.endpoint.url, ENDPOINT))
