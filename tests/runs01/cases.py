"""Which runs are recorded, what the model of the tests says, and how a recorded run is laid out.

A recorded run is a folder `NAME` here: `run/` is the folder that version 0.1 wrote, and beside it
stands what 0.1 made of it (see `observe`). Two words in its files stand for what differs from
machine to machine: ``@ROOT@`` for the folder in which `keju` was called, which holds `data/` and
`runs/`, and ``@ENDPOINT@`` for the address of the model.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.runs01.changes import declared, reworded
from tests.runs01.questions import SUBJECTS, bbh_rows
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import parts
from tests.support.replies import Asked, Plan, draw

HERE = Path(__file__).parent
IMPORTED_LOG = HERE.parent / "interop" / "imports" / "fixtures" / "evalscope"
IMPORTED_DATA = HERE.parent / "interop" / "imports" / "fixtures" / "data"
ROOT, ENDPOINT = "@ROOT@", "@ENDPOINT@"
KNOCK = "Answer with one letter, A or B."
"""What a call says that only shows whether the endpoint works."""


@dataclass(frozen=True)
class Case:
    """One recorded run."""

    name: str
    flags: tuple[str, ...] = ()
    """Of `keju eval`, apart from the model, its address, the data and the run."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """How the endpoint behaves while the run is recorded and when it is resumed."""
    at_first: Mapping[str, Any] = field(default_factory=dict)
    """How it behaves otherwise while the run is recorded."""
    judged: bool = False
    resumes: bool = True
    """Whether `keju eval` may go on with it: not with a run that was imported."""


def _args(**settings: Any) -> tuple[str, str]:
    return "--dataset-args", json.dumps(settings)


_JUDGE = {"model": "judge", "repeats": 3, "second": "judge-2", "price": {"input": 1, "output": 2}}
_KINDS = ["boolean_expressions", "object_counting"]
_TWICE = ("--reader", "evalscope,robust")
_SUBJECTS = list(SUBJECTS)

CASES = (
    Case("bbh", ("--datasets", "bbh", *_TWICE)),
    Case("bbh-paper", ("--datasets", "bbh", "--protocol", "paper", "--language", "zh")),
    Case("mmlu_pro", ("--datasets", "mmlu_pro", "--price", "input=1,output=2", *_TWICE)),
    Case("mmlu_pro-official", ("--datasets", "mmlu_pro", "--protocol", "official", "--limit", "2")),
    Case(
        "mmlu_pro-drawn",
        ("--datasets", "mmlu_pro", "--limit", "0.5", "--sample", "stratified", "--seed", "7"),
    ),
    Case(
        "mmlu_pro-rotated",
        ("--datasets", "mmlu_pro", "--rotate-options", "3", "--limit", "1", *_TWICE),
    ),
    Case("ceval", ("--datasets", "ceval", *_args(ceval={"subset_list": _SUBJECTS}), *_TWICE)),
    Case(
        "ceval-labels",
        ("--datasets", "ceval", "--protocol", "tutorial", *_args(ceval={"subset_list": _SUBJECTS})),
    ),
    Case("bixbench", ("--datasets", "bixbench", *_args(bixbench={"with_refusal": True}))),
    Case(
        "bixbench-judged",
        (
            *("--datasets", "bixbench", *_args(bixbench={"answer_mode": "open"})),
            *("--judge", json.dumps(_JUDGE)),
        ),
        judged=True,
    ),
    Case(
        "several",
        (
            *("--datasets", "bbh", "mmlu_pro", "ceval", "bixbench", "demo", "--limit", "1"),
            *_args(ceval={"subset_list": _SUBJECTS}, bbh={"few_shot_num": 0}, demo={"size": 3}),
        ),
    ),
    Case(
        "repeated",
        (
            *("--datasets", "demo", "--repeats", "3", "--generation-config", "temperature=0.7"),
            *_args(demo={"size": 3}),
        ),
    ),
    Case("custom", ("--datasets", "custom:data/quiz")),
    Case(
        "errors",
        (
            *("--datasets", "demo", *_args(demo={"size": 6}), "--attempts", "1"),
            *("--error-limit", "1", "--eval-batch-size", "1"),
        ),
        plan={"context": 900},
        at_first={"faults": {"500": 0.15}, "seed": 3},
    ),
    Case(
        "killed",
        (
            *("--datasets", "demo", *_args(demo={"size": 40, "subset_list": _KINDS})),
            *("--eval-batch-size", "4"),
        ),
        at_first={"latency": 0.05},
    ),
    Case("imported", resumes=False),
)
BY_NAME = {case.name: case for case in CASES}


class Ran(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str


Keju = Callable[..., Ran]
"""Runs ``keju ARGV...`` in the folder in which a run was laid out."""


# What the model says


def reply(asked: Asked) -> str:
    """What candidates and judges say: a fixed reply to each prompt and seed, mostly right."""
    if asked.text == KNOCK:
        return "A"
    if str(asked.body.get("model")).startswith("judge"):
        return _verdict(asked)
    text, chance = asked.text, draw(asked.text, asked.body.get("seed"))
    if chance > 0.95:
        return "The weather is fine today."
    known = _bbh_target(text)
    if known is not None:
        return f"Let me see. So the answer is {known if chance < 0.7 else _other(known)}."
    label = _label(text)
    if label is None:
        return f"So the answer is ({'AB'[int(chance * 2)]})."
    if chance > 0.7:
        label = "BAAAAAAAAA"["ABCDEFGHIJ".index(label)]
    return _worded(label, asked)


def _worded(label: str, asked: Asked) -> str:
    """An answer in the form that the prompt asks for."""
    text = json.dumps(asked.body, ensure_ascii=False)
    if asked.route == "completion":
        return f" It is so. The answer is ({label})."
    if "ANSWER" in text:
        return f"I add them up.\nANSWER: {label}"
    if "答案" in text:
        return f"加起来。\n答案：{label}"
    if "Options:" not in text:
        gene = re.findall(r"label (\d+)\?", asked.text)[-1]
        wrong = "" if label == "D" else "0"
        return f"I would say that it is the gene called K{gene}{wrong}."
    return label


def _bbh_target(text: str) -> str | None:
    found = [(text.rfind(question), len(question), gold) for question, gold in _TARGETS.items()]
    place, _, target = max(found)
    return target if place >= 0 else None


_TARGETS = {row["input"]: row["target"] for rows in bbh_rows().values() for row in rows}
_OTHERS = {"Yes": "No", "yes": "no", "True": "False", "valid": "invalid", "(A)": "(B)"}
_OTHERS |= {other: one for one, other in _OTHERS.items()}


def _other(target: str) -> str:
    """A wrong answer of the same kind."""
    if target in _OTHERS:
        return _OTHERS[target]
    if target.startswith("("):
        return "(A)"
    return str(int(target) + 1) if re.fullmatch(r"-?\d+", target) else f"{target} {target}"


def _label(text: str) -> str | None:
    """The label of the right option of the last question, if it is one of ours."""
    sums = list(re.finditer(r"(\d+)(?: plus |加)(\d+)(?:\?|等于)", text))
    genes = list(re.finditer(r"label (\d+)\?", text))
    if not sums and not genes:
        return None
    last = (sums or genes)[-1]
    value = sum(int(number) for number in last.groups())
    shown = rf"([A-J])\W+(?:the value |the number |数|Gene K)?{value}(?!\d)"
    found = re.search(shown, text[last.end() :])
    return found[1] if found else "D" if draw(text) < 0.6 else "C"


def _verdict(asked: Asked) -> str:
    shown = parts(asked)
    gene = re.search(r"K\d+", shown.target)
    right = gene is not None and gene[0] in re.findall(r"K\d+", shown.answer)
    return f"I compared them. <grade>{'correct' if right else 'incorrect'}</grade>"


class Served:
    """An endpoint that keeps what it was asked."""

    def __init__(self, case: Case, *, first: bool = False) -> None:
        self.asked: list[Asked] = []
        settings = {**case.plan, **(case.at_first if first else {})}
        self.endpoint = FaultyEndpoint(Plan(answers=self._answer, **settings))

    def _answer(self, asked: Asked) -> str:
        self.asked.append(asked)
        return reply(asked)

    @property
    def counts(self) -> dict[str, int]:
        """How many questions were answered, and how many calls only knocked."""
        knocks = sum(asked.text == KNOCK for asked in self.asked)
        return {"questions": len(self.asked) - knocks, "knocks": knocks}


# Laying a recorded run out, and what is seen of it


def lay(case: Case, root: Path, url: str) -> Path:
    """Copy a recorded run and its data below `root`; return the run's folder."""
    shutil.copytree(IMPORTED_DATA if case.name == "imported" else HERE / "data", root / "data")
    folder = root / "runs" / case.name
    shutil.copytree(HERE / case.name / "run", folder)
    for path in folder.iterdir():
        text = path.read_bytes()
        text = text.replace(ROOT.encode(), str(root).encode())
        path.write_bytes(text.replace(ENDPOINT.encode(), url.encode()))
    return folder


def score(case: Case, keju: Keju) -> Any:
    """``keju score``: what the stored replies come to."""
    return _document(keju("score", f"runs/{case.name}", "--json"))


def export(case: Case, keju: Keju, form: str) -> str:
    """``keju export``: a row for each record."""
    ran = keju("export", f"runs/{case.name}", "--format", form)
    assert ran.code == 0
    return ran.out


def resume(case: Case, keju: Keju, served: Served) -> Any:
    """``keju eval --resume``: what was asked, and the results."""
    manifest = f"runs/{case.name}/manifest.json"
    ran = keju("eval", "--config", manifest, "--resume", "--json", "-q", "--no-report")
    return {**served.counts, **_document(ran)}


def judge(case: Case, keju: Keju, served: Served, *flags: str) -> Any:
    """``keju judge``: what was asked, and the results."""
    ran = keju("judge", f"runs/{case.name}", "--json", "-q", "--no-report", *flags)
    return {**served.counts, **_document(ran)}


def _document(ran: Ran) -> dict[str, Any]:
    return {"code": ran.code, "results": json.loads(ran.out)}


def results(case: Case) -> Any:
    """The results that 0.1 wrote; None where it was killed before."""
    path = HERE / case.name / "run" / "results.json"
    return json.loads(path.read_bytes()) if path.exists() else None


# Comparing what a later version says with what 0.1 said

VOLATILE = frozenset({"timing", "complete"})
"""Keys that are not compared: times, and what `keju score` does not say."""


def lost(run: str, recorded: Any, now: Any, place: str = "") -> list[str]:
    """What was recorded of a run and is not there any more, or not the same.

    New keys are none of it, nor is what `changes` declares. Lists have as many entries as before,
    but for warnings: there may be more of them.
    """
    if declared(run, place):
        return []
    if isinstance(recorded, dict) and isinstance(now, dict):
        found = []
        for key in recorded.keys() - VOLATILE:
            where = f"{place}/{key}"
            if key in now:
                found += lost(run, recorded[key], now[key], where)
            elif not declared(run, where):
                found.append(f"{where} is gone")
        return found
    if isinstance(recorded, list) and isinstance(now, list):
        if place.endswith("/warnings"):
            return [
                f"{place}: {words!r} is gone"
                for n, words in enumerate(recorded)
                if not any(line.startswith(reworded(words)) for line in now)
                and not declared(run, f"{place}/{n}")
            ]
        if len(recorded) == len(now):
            pairs = enumerate(zip(recorded, now, strict=True))
            return [line for n, pair in pairs for line in lost(run, *pair, f"{place}/{n}")]
    if isinstance(recorded, float) and isinstance(now, int | float):
        same = math.isclose(recorded, now, rel_tol=1e-9, abs_tol=1e-12)
        return [] if same else [f"{place}: {recorded!r} became {now!r}"]
    return [] if recorded == now else [f"{place}: {recorded!r} became {now!r}"]
