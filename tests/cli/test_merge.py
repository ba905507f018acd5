"""``--shard`` and ``keju merge``: the parts of a run from several jobs make the run of one job."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.runs.journal import FILE, Records
from tests.cli.conftest import Keju, Ran
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import JUDGED, RIGHT, candidate_or_verdict
from tests.support.killed import killed_in
from tests.support.processes import environment
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow

SIZE = 40
SUBSETS = 2
RUNS = Path("runs")


def answer(request: EndpointRequest) -> str:
    return f"So the answer is ({'ABCD'[int(draw(request.text) * 4)]})."


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers=answer)


class Evaluate:
    """``keju eval`` of the same exam, under a run id and with more flags each time."""

    def __init__(self, keju: Keju, endpoint: FaultyEndpoint) -> None:
        self._keju, self.endpoint = keju, endpoint

    def __call__(self, run: str, *flags: str, model: str = "m", **args: Any) -> Ran:
        exam_args = {"size": SIZE, "subset_list": ["object_counting", "word_sorting"]} | args
        exams = ("--datasets", "demo", "--dataset-args", json.dumps({"demo": exam_args}))
        return self._keju(
            *("eval", "-m", model, "--api-url", self.endpoint.url, "--run-id", run),
            *("--json", "--no-report", "-q", *flags, *(() if "--datasets" in flags else exams)),
        )

    def parts(self, *shards: str, flags: tuple[str, ...] = ()) -> list[str]:
        """Runs of these shards; their ids."""
        names = [shard.replace("/", "of") for shard in shards]
        for name, shard in zip(names, shards, strict=True):
            assert self(name, "--shard", shard, *flags).code == 0
        return names


@pytest.fixture
def evaluate(keju: Keju, endpoint: FaultyEndpoint) -> Evaluate:
    return Evaluate(keju, endpoint)


def numbers(document: dict[str, Any]) -> Any:
    """All that results say of the answers, without how long they took and the run's own name."""
    left_out = ("seconds", "timing", "latency", "cost", "warnings")
    entries = [
        {key: entry[key] for key in entry if key not in left_out}
        for entry in document["benchmarks"]
    ]
    for notice in (notice for entry in entries for notice in entry["notices"]):
        notice.get("values", {}).pop("run", None)
    return entries


def warnings(ran: Ran) -> list[str]:
    return [line for entry in ran.json["benchmarks"] for line in entry["warnings"]]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    "flags",
    [(), ("--repeats", "2"), ("--limit", "7", "--sample", "random"), ("--rotate-options", "2")],
    ids=["whole", "repeats", "random", "rotations"],
)
def test_a_run_in_three_shards_is_the_plain_run(
    evaluate: Evaluate, keju: Keju, flags: tuple[str, ...]
) -> None:
    plain = evaluate("plain", *flags)
    parts = evaluate.parts("1/3", "2/3", "3/3", flags=flags)
    sizes = [len(list(Records(RUNS / part))) for part in parts]
    requests_before, before = (
        evaluate.endpoint.stats.requests,
        [contents(RUNS / part) for part in parts],
    )
    merged = keju("merge", *parts, "-o", "whole", "--json", "--no-report")
    assert (merged.code, merged.err) == (0, "")
    assert evaluate.endpoint.stats.requests == requests_before, "nobody is asked"
    assert [contents(RUNS / part) for part in parts] == before, "the parts stay as they are"
    assert merged.json["complete"] is True
    assert numbers(merged.json) == numbers(plain.json)
    keys = [(r.id, r.epoch, r.hash) for r in Records(RUNS / "whole")]
    assert len(keys) == len(set(keys)) == sum(sizes)
    assert set(keys) == {(r.id, r.epoch, r.hash) for r in Records(RUNS / "plain")}
    assert max(sizes) - min(sizes) <= 2 * SUBSETS
    scored = keju("score", "whole", "--json")
    assert numbers(scored.json) == numbers(keju("score", "plain", "--json").json)
    compared = keju("compare", "plain", "whole", "--json")
    assert compared.code == 0
    rerun = evaluate("whole", *flags)
    assert (rerun.code, evaluate.endpoint.stats.requests) == (0, requests_before), (
        "the merged run is complete"
    )


@pytest.mark.parametrize("place", ["write_json", "_summarise_merged", "write_outputs"])
def test_a_merge_that_is_killed_leaves_nothing_and_can_be_repeated(
    place: str, evaluate: Evaluate, keju: Keju
) -> None:
    parts = evaluate.parts("1/2", "2/2")
    words = ("merge", *parts, "-o", "whole", "--json", "--no-report")
    assert killed_in("keju.stored_tasks", place, *words) == 9
    assert not (RUNS / "whole").exists()
    assert "whole" not in keju("list", "runs", "--json").out
    merged = keju(*words)
    assert (merged.code, merged.err) == (0, "")
    assert merged.json["folder"] == str(RUNS / "whole")
    assert sorted(path.name for path in RUNS.iterdir()) == sorted([*parts, "whole"])


def test_several_exams_and_more_parts_than_questions_of_one(evaluate: Evaluate, keju: Keju) -> None:
    args = json.dumps({"demo": {"size": 8}, "fresh_bbh": {"subset_list": ["navigate"]}})
    flags = ("--datasets", "demo", "fresh_bbh", "--limit", "2", "--dataset-args", args)
    plain = evaluate("plain", *flags)
    assert plain.code == 0, plain.err
    exam_count = len(plain.json["benchmarks"])
    assert exam_count == 2
    parts = evaluate.parts("1/3", "2/3", "3/3", flags=flags)
    merged = keju("merge", *reversed(parts), "-o", "whole", "--json", "--no-report")
    assert (merged.code, merged.err) == (0, "")
    ordered = {entry["name"]: entry for entry in numbers(merged.json)}
    assert ordered == {entry["name"]: entry for entry in numbers(plain.json)}


def test_a_missing_shard_is_named_and_can_be_asked(evaluate: Evaluate, keju: Keju) -> None:
    plain = evaluate("plain")
    parts = evaluate.parts("1/3", "3/3")
    merged = keju("merge", *parts, "-o", "whole", "--json", "--no-report")
    assert merged.code == 4
    assert merged.json["complete"] is False
    assert "1 of 3 parts is not among the runs: 2" in warnings(merged)
    assert len(merged.err.splitlines()) == 2  # the second is the command that goes on
    requests_before = evaluate.endpoint.stats.requests
    before, _, command = merged.err.strip().partition("resume with:\n  keju ")
    assert command.startswith("eval --config runs/whole/manifest.json --resume"), before
    resumed = keju(*shlex.split(command), "--json", "--no-report")
    assert resumed.code == 0, resumed.err
    preflight = 1
    assert evaluate.endpoint.stats.requests - requests_before - preflight == SIZE * SUBSETS - sum(
        len(list(Records(RUNS / part))) for part in parts
    )
    assert numbers(resumed.json) == numbers(plain.json)


def test_duplicates_count_once_and_are_told(evaluate: Evaluate, keju: Keju) -> None:
    plain = evaluate("plain")
    parts = evaluate.parts("1/2", "2/2")
    shutil.copytree(RUNS / parts[0], RUNS / "copy")
    merged = keju("merge", *parts, "copy", "-o", "whole", "--json", "--no-report")
    assert merged.code == 0
    doubled = len(list(Records(RUNS / "copy")))
    duplicate_warnings = [line for line in warnings(merged) if "more than one part" in line]
    assert len(duplicate_warnings) == 1
    assert duplicate_warnings[0].startswith(f"{doubled} questions are answered")
    assert [e["metrics"] for e in merged.json["benchmarks"]] == [
        e["metrics"] for e in plain.json["benchmarks"]
    ]
    twice = keju("merge", parts[0], f"runs/{parts[0]}", "-o", "other")
    assert (twice.code, len(twice.err.splitlines())) == (2, 1)
    assert not (RUNS / "other").exists()


@pytest.mark.parametrize(
    ("flags", "args", "reason"),
    [
        ((), {"model": "other"}, "model: m / other"),
        (("--generation-config", '{"temperature": 0.5}'), {}, "temperature"),
        (("--limit", "3"), {}, "limit: none / 3"),
        (("--seed", "7"), {}, "seed: 42 / 7"),
        ((), {"size": SIZE + 2}, "size"),
    ],
    ids=["model", "sampling", "limit", "seed", "data"],
)
def test_a_foreign_run_is_refused_in_one_line(
    evaluate: Evaluate, keju: Keju, flags: tuple[str, ...], args: dict[str, Any], reason: str
) -> None:
    (part,) = evaluate.parts("1/2")
    assert evaluate("foreign", "--shard", "2/2", *flags, **args).code == 0
    refusal = keju("merge", part, "foreign", "-o", "whole")
    assert (refusal.code, len(refusal.err.splitlines())) == (2, 1)
    assert "'foreign' is not a part of the same run" in refusal.err
    assert reason in refusal.err
    assert not (RUNS / "whole").exists()


def test_a_damaged_journal_is_told_and_its_questions_are_asked_again(
    evaluate: Evaluate, keju: Keju
) -> None:
    plain = evaluate("plain")
    parts = evaluate.parts("1/2", "2/2")
    path = RUNS / parts[1] / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"text":"So', b'"text":"No')  # its checksum is another now
    lines[4] = b"\xff\xfe{broken\n"
    path.write_bytes(b"".join(lines) + b'{"bench":"torn')
    merged = keju("merge", *parts, "-o", "whole", "--json", "--no-report")
    assert merged.code == 4
    damage_warnings = [line for line in warnings(merged) if "2 lines" in line]
    assert len(damage_warnings) == 1, warnings(merged)
    assert len(list(Records(RUNS / "whole"))) == SIZE * SUBSETS - 2
    resumed = evaluate("whole")
    assert resumed.code == 0
    assert numbers(resumed.json) == numbers(plain.json)
    (RUNS / parts[0] / "manifest.json").write_text("{")
    broken = keju("merge", *parts, "-o", "other")
    assert broken.code != 0
    assert len(broken.err.splitlines()) == 1
    assert not (RUNS / "other").exists()


def test_errors_of_a_part_are_errors_of_the_whole(keju: Keju) -> None:
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        evaluate = Evaluate(keju, endpoint)
        (first_part,) = evaluate.parts("1/2")
    with FaultyEndpoint(Plan(answers=answer, faults={"400": 0.5})) as endpoint:
        evaluate = Evaluate(keju, endpoint)
        failed_part = evaluate("2of2", "--shard", "2/2")
        assert failed_part.code != 0
    merged = keju("merge", first_part, "2of2", "-o", "whole", "--json", "--no-report")
    assert (merged.code, len(merged.err.splitlines())) == (4, 2)
    (entry,), (part,) = merged.json["benchmarks"], failed_part.json["benchmarks"]
    assert entry["outcomes"]["error"] == part["outcomes"]["error"] > 0
    assert sum(entry["outcomes"].values()) == SIZE * SUBSETS
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        resumed = Evaluate(keju, endpoint)("whole")
        requests_before, preflight = endpoint.stats.requests, 1
    assert resumed.code == 0
    assert requests_before - preflight == part["outcomes"]["error"], (
        "only the errors are asked again"
    )


def test_what_cannot_be_merged_is_one_line(evaluate: Evaluate, keju: Keju) -> None:
    parts = evaluate.parts("1/2", "2/2")
    assert evaluate("ruled", "--until-ci", "0.4").code == 0
    for argv, words in (
        (("merge", *parts), "-o RUN"),
        (("merge", parts[0], "-o", "whole"), "at least two"),
        (("merge", *parts, "-o", "ruled"), "is there already"),
        (("merge", *parts, "nowhere", "-o", "whole"), "nowhere"),
        (("merge", "ruled", *parts, "-o", "whole"), "'ruled' was ended by a rule"),
    ):
        ran = keju(*argv)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1), argv
        assert words in ran.err, argv
    with (RUNS / parts[1] / FILE).open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        busy = keju("merge", *parts, "-o", "whole")
    assert (busy.code, len(busy.err.splitlines())) == (2, 1)
    assert not (RUNS / "whole").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--shard", "4/3"), "must not be larger"),
        (("--shard", "0/3"), "shard: must be K/N, K from 1 to N"),
        (("--shard", "three"), "shard"),
        (("--shard", "1/2", "--until-ci", "0.02"), "look at the whole exam"),
        (("--shard", "900/1000"), "part 900/1000 has no question"),
    ],
)
def test_shards_that_cannot_be(evaluate: Evaluate, flags: tuple[str, ...], words: str) -> None:
    ran = evaluate("r", *flags)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1), ran.err
    assert words in ran.err
    assert not RUNS.exists() or not (RUNS / "r").exists()


def test_a_shard_says_that_it_is_one_and_is_no_other(evaluate: Evaluate) -> None:
    first_shard = evaluate("r", "--shard", "1/3")
    assert any("part 1 of 3: " in line for line in warnings(first_shard)), warnings(first_shard)
    other_shard = evaluate("r", "--shard", "2/3")
    assert (other_shard.code, len(other_shard.err.splitlines())) == (2, 1)
    all_shards = evaluate("r")
    assert all_shards.code == 0, "a part may grow to the whole"
    assert all_shards.json["benchmarks"][0]["n"] == SIZE * SUBSETS


SBATCH = """#!/bin/bash
# Stands in for Slurm: runs the tasks of an array one after the other, or a wrapped command.
for word; do case $word in *.sbatch) script=$word;; --wrap) wrap=1;; *) last=$word;; esac; done
if [ -n "$wrap" ]; then exec bash -c "$last"; fi
last=$(sed -n 's/#SBATCH --array=1-//p' "$script")
for ((task = 1; task <= last; task++)); do
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$last bash "$script" >&2
done
echo 4711
"""


def test_the_array_of_jobs_in_the_documentation_works(
    evaluate: Evaluate, keju: Keju, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "many-models.md").read_text()
    script, submit, _ = re.findall(r"```bash\n(.*?)```", page.partition("#### Slurm")[2], re.DOTALL)
    task = {"model": "m", "api_url": evaluate.endpoint.url, "datasets": ["demo"]}
    Path("task.yaml").write_text(json.dumps(task))
    Path("part.sbatch").write_text(script)
    programs = {"sbatch": SBATCH, "keju": f'#!/bin/bash\nexec {sys.executable} -m keju "$@"\n'}
    for name, text in programs.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    environ = environment()
    environ["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{environ['PATH']}"
    process = subprocess.run(["bash", "-ec", submit], env=environ, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert len(list(RUNS.glob("tuesday-*"))) == 4
    plain = keju("eval", "-c", "task.yaml", "--run-id", "plain", "--json", "-q")
    assert numbers(json.loads((RUNS / "tuesday" / "results.json").read_text())) == numbers(
        plain.json
    )


def test_verdicts_of_judges_are_merged(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "open", ("tests.support.open_exam:OPEN",))
    with FaultyEndpoint(Plan(answers=candidate_or_verdict)) as endpoint:
        words = ["eval", "-m", "m", "--api-url", endpoint.url, "--datasets", "open", "-q", "--json"]
        words += ["--judge", json.dumps({"model": "judge"}), "--no-report"]
        plain = keju(*words, "--run-id", "plain")
        for shard in "12":
            assert keju(*words, "--run-id", shard, "--shard", f"{shard}/2").code == 0
        requests_before = endpoint.stats.requests
        merged = keju("merge", "1", "2", "-o", "whole", "--json", "--no-report")
        assert (merged.code, endpoint.stats.requests) == (0, requests_before), merged.err
    (entry,), (plain_entry,) = numbers(merged.json), numbers(plain.json)
    assert entry["outcomes"]["correct"] == RIGHT
    assert entry["judge"]["judged"] == JUDGED
    assert (entry["metrics"], entry["outcomes"]) == (
        plain_entry["metrics"],
        plain_entry["outcomes"],
    )
