"""Which questions are asked, and what can be seen, taken out and deleted of a stored run."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Keju, keju

pytestmark = pytest.mark.slow

__all__ = ["keju"]

DEMO = ("eval", "--model", "scripted", "--datasets", "demo", "--json")


def ids_of(run: str) -> list[str]:
    lines = Path("runs", run, "records.jsonl").read_text("utf-8").splitlines()
    return sorted(json.loads(line)["id"] for line in lines)


def test_a_total_is_spread_over_the_subsets(keju: Keju) -> None:
    (entry,) = keju(*DEMO, "--total", "20", "--run-id", "some").json["benchmarks"]
    assert entry["n"] == 20
    assert {row["n"] for row in entry["subsets"]} == {3, 4}
    smaller = ids_of("some")
    keju(*DEMO, "--total", "31", "--run-id", "more")
    assert set(smaller) < set(ids_of("more")), "a larger total keeps what a smaller one took"


def test_ids_choose_questions_and_the_result_says_so(keju: Keju) -> None:
    keju(*DEMO, "--limit", "2", "--run-id", "first")
    wanted_ids = ids_of("first")[:3]
    (entry,) = keju(*DEMO, "--ids", *wanted_ids, "--run-id", "chosen").json["benchmarks"]
    assert ids_of("chosen") == wanted_ids
    assert any("3 chosen questions" in warning for warning in entry["warnings"])
    unknown = keju(*DEMO, "--ids", wanted_ids[0], "zzz", "--run-id", "none")
    assert (unknown.code, "no question of demo has the id 'zzz'" in unknown.err) == (2, True)
    conflicting = keju(*DEMO, "--ids", wanted_ids[0], "--limit", "1")
    assert (conflicting.code, "cannot be used together" in conflicting.err) == (2, True)


def test_what_failed_is_asked_again(keju: Keju) -> None:
    (entry,) = keju(*DEMO, "--limit", "5", "--run-id", "first").json["benchmarks"]
    right = entry["outcomes"]["correct"]
    assert 0 < right < entry["n"]
    (retried,) = keju(*DEMO, "--failed-of", "first", "--run-id", "again").json["benchmarks"]
    assert retried["n"] == entry["n"] - right
    assert retried["outcomes"]["correct"] == 0
    keju("rm", "first", "--yes")
    assert keju(*DEMO, "--failed-of", "first", "--run-id", "again").code == 2
    resumed = keju("eval", "-c", "runs/again/manifest.json", "--json")
    assert resumed.json["benchmarks"][0]["n"] == retried["n"], "the ids are the new run's own"


def test_what_failed_of_another_exam_is_refused(keju: Keju, data_dir: Path) -> None:
    keju(*DEMO, "--limit", "2", "--run-id", "first")
    argv = ("eval", "-m", "scripted", "--datasets", "bbh", "--data-dir", str(data_dir))
    ran = keju(*argv, "--failed-of", "first")
    assert (ran.code, ran.err) == (
        2,
        "keju: error: --failed-of: run 'first' contains demo, not bbh\n",
    )


def test_limit_and_sampling_of_one_exam(keju: Keju, data_dir: Path) -> None:
    args = {
        "bbh": {"limit": 1, "generation_config": {"max_tokens": 77}},
        "ceval": {"protocol": "tutorial"},
    }
    argv = ["eval", "--model", "scripted", "--datasets", "bbh", "ceval", "--limit", "2"]
    argv += ["--data-dir", str(data_dir), "--dataset-args", json.dumps(args), "--json"]
    bbh, ceval = keju(*argv, "--run-id", "both").json["benchmarks"]
    assert (bbh["n"], ceval["n"]) == (27, 104)
    manifest = json.loads(Path("runs/both/manifest.json").read_bytes())
    sampling = {exam["name"]: exam["sampling"] for exam in manifest["benchmarks"]}
    assert sampling["bbh"]["max_tokens"] == 77
    assert sampling["ceval"]["max_tokens"] is None


def test_the_name_of_another_tool_means_its_protocol(keju: Keju, data_dir: Path) -> None:
    argv = ["eval", "--model", "scripted", "--datasets", "bigbench-hard", "--total", "3", "--json"]
    argv += ["--data-dir", str(data_dir)]
    assert keju(*argv).json["benchmarks"][0]["protocol"] == "mcpbr"
    assert keju(*argv, "--protocol", "paper").json["benchmarks"][0]["protocol"] == "paper"


def test_a_stored_reply_is_shown(keju: Keju) -> None:
    keju(*DEMO, "--limit", "1", "--run-id", "one")
    sample = ids_of("one")[0]
    output = keju("show", "one", "--sample", sample)
    assert output.code == 0
    assert "--- reply ---" in output.out
    assert "--- user ---" in output.out
    document = keju("show", "one", "--sample", sample, "--json").json
    assert document["replies"][0]["id"] == sample
    missing = keju("show", "one", "--sample", sample + "x")
    assert (missing.code, f"did you mean '{sample}'" in missing.err) == (2, True)


def test_runs_are_listed_with_their_scores(keju: Keju) -> None:
    (entry,) = keju(*DEMO, "--limit", "4", "--run-id", "one").json["benchmarks"]
    (row,) = keju("list", "runs", "--json").json["runs"]
    assert row["scores"] == [entry["metrics"][entry["headline"]]["value"]]
    assert (row["n"], row["protocols"]) == ([entry["n"]], [entry["protocol"]])


def test_results_stand_alone_and_say_what_they_took(keju: Keju) -> None:
    price = ("--price", "input=1,output=2")
    document = keju(*DEMO, "--limit", "2", "--run-id", "one", *price).json
    assert document["settings"]["datasets"] == ["demo"]
    assert document["created"]
    assert document["version"]
    assert document["folder"] == "runs/one"
    usage = document["benchmarks"][0]["usage"]
    assert usage["cost"] == pytest.approx(
        (usage["input_tokens"] + 2 * usage["output_tokens"]) / 1e6
    )
    assert usage["retries"] == 0
    output = keju("eval", "--model", "scripted", "--datasets", "demo", "--limit", "2", *price)
    assert "retries) · " in output.out
    assert " · cost 0.00" in output.out


def test_prompts_as_json(keju: Keju, data_dir: Path) -> None:
    argv = ("prompts", "ceval", "--protocol", "tutorial", "--data-dir", str(data_dir))
    files = keju(*argv, "-o", "lib_prompt", "--json").json["files"]
    assert len(files) == 52
    document = json.loads(Path("lib_prompt/law.json").read_bytes())
    assert document["title"] == "法学"
    assert [turn["role"] for turn in document["messages"]][:2] == ["system", "user"]


def test_predictions_in_the_files_of_the_exam(keju: Keju, data_dir: Path) -> None:
    argv = ["eval", "--model", "scripted", "--datasets", "ceval", "--total", "60", "--run-id", "t"]
    argv += ["-s", "dataset_args.ceval.split=test", "--data-dir", str(data_dir), "--json"]
    assert keju(*argv).code == 0
    assert keju("export", "t", "--format", "ceval-csv", "-o", "predicted").code == 0
    text = Path("predicted/law_test.csv").read_text("utf-8")
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["id", "question", "A", "B", "C", "D", "模型预测"]
    published = (data_dir / "ceval/test/law_test.csv").read_text("utf-8-sig")
    published_rows = {row[0]: row[:6] for row in csv.reader(io.StringIO(published))}
    assert all(
        [cell.strip() for cell in row[:6]] == [c.strip() for c in published_rows[row[0]]]
        for row in rows
    )
    assert {row[6] for row in rows} <= {"", "A", "B", "C", "D"}


EVALSCOPE_LENGTHS = {
    "computer science": 5184.05, "math": 4853.54, "chemistry": 4567.2, "engineering": 3595.66,
    "law": 7001.35, "biology": 5881.08, "health": 4624.44, "physics": 4389.59, "business": 4646.01,
    "philosophy": 3760.1, "economics": 4680.21, "other": 3730.86, "psychology": 5274.19,
    "history": 9919.94,
}  # fmt: skip
"""The mean prompt lengths of EvalScope's page on MMLU-Pro."""


def test_options_with_their_blanks(keju: Keju, data_dir: Path) -> None:
    argv = ("stats", "mmlu_pro", "--data-dir", str(data_dir), "--json")
    plain = keju(*argv).json
    with_blanks = keju(*argv, "--dataset-args", "mmlu_pro.option_blanks=true").json
    assert plain["total"]["mean"] == 4959.66  # as on the page
    assert with_blanks["total"]["mean"] > 4959.66
    deviations = {
        name: {subset: row["mean"] - EVALSCOPE_LENGTHS[subset] for subset, row in rows.items()}
        for name, rows in (("plain", plain["subsets"]), ("kept", with_blanks["subsets"]))
    }
    # Four categories differ by a few characters, since the page is of another revision.
    unchanged = [subset for subset, length in deviations["plain"].items() if abs(length) < 0.006]
    assert len(unchanged) == 10
    assert all(abs(length) < 0.12 for length in deviations["plain"].values())
    for subset in ("math", "physics", "chemistry"):
        assert deviations["kept"][subset] > 0.09


def test_subsets_are_described(keju: Keju) -> None:
    rows = keju("list", "subsets", "--benchmark", "bbh", "--json").json["subsets"]
    assert len(rows) == 27
    assert all(row["about"] and row["questions"] for row in rows)


def test_a_run_is_deleted_only_when_it_is_meant(keju: Keju) -> None:
    keju(*DEMO, "--limit", "1", "--run-id", "one")
    refusal = keju("rm", "one")
    assert (refusal.code, "needs --yes" in refusal.err) == (2, True)
    assert Path("runs/one").is_dir()
    assert keju("rm", "one", "--yes").code == 0
    assert not Path("runs/one").exists()
    assert keju("rm", "one", "--yes").code == 2


@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [("", 2, "deleting runs/one needs --yes"), ("\n", 0, ""), ("n\n", 0, ""), ("y\n", 0, "")],
)
def test_a_question_without_an_answer_is_refused(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, message: str
) -> None:
    keju(*DEMO, "--limit", "1", "--run-id", "one")
    terminal = io.StringIO(typed)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    ran = keju("rm", "one")
    assert (ran.code, message in ran.err) == (code, True), ran.err
    assert Path("runs/one").is_dir() == (typed != "y\n")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_id_that_is_none_is_told_one_that_is(keju: Keju, language: str) -> None:
    keju(*DEMO, "--run-id", "one")
    wrong = keju("show", "one", "--sample", "3", "--language", language)
    assert (wrong.code, "keju show one" in wrong.err) == (2, True), wrong.err
    named_ids = re.findall(r"demo_\w+", wrong.err)
    assert keju("show", "one", "--sample", *named_ids).code == 0


def test_a_run_is_shown_with_ids_that_can_be_shown(keju: Keju) -> None:
    keju(*DEMO, "--run-id", "one")
    counts = keju("score", "one", "--json").json["benchmarks"][0]["outcomes"]
    document = keju("show", "one", "--json").json
    assert (document["run"], document["model"], document["complete"]) == ("one", "scripted", True)
    (exam,) = document["benchmarks"]
    assert (exam["name"], exam["protocol"], exam["reader"]) == ("demo", "text", "marker")
    assert exam["outcomes"] == {outcome: n for outcome, n in counts.items() if n}
    outcomes = [row["outcome"] for row in document["samples"]]
    assert len(outcomes) == 10
    assert outcomes == sorted(outcomes, key=lambda outcome: outcome == "correct")
    for language, words in (
        ("en", ["run one · model scripted · complete", f"{counts['correct']} correct"]),
        ("zh", ["运行 one · 模型 scripted · 已完成", f"正确 {counts['correct']}"]),
    ):
        table_output = keju("show", "one", "--language", language)
        assert table_output.code == 0
        assert all(word in table_output.out for word in words), table_output.out
        assert all(row["id"] in table_output.out for row in document["samples"])
        command = table_output.err.splitlines()[-1].split()
        assert command[:3] == ["keju", "show", "one"]
        assert keju(*command[1:]).out.startswith(document["samples"][0]["id"])
    for flags in (("--subset", "x"), ("--index", "3"), ("--protocol", "text")):
        refusal = keju("show", "one", *flags)
        assert (refusal.code, "give the id of one of its questions" in refusal.err) == (2, True)
    assert keju("show", "one", "--arm", "calc").code == 2


class EndpointRequest(io.StringIO):
    """A terminal at which somebody has answered."""

    def isatty(self) -> bool:
        return True


def test_several_runs_are_deleted_together_or_not_at_all(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "three"):
        keju(*DEMO, "--limit", "1", "--run-id", name)
    wrong = keju("rm", "one", "there-is-none", "two", "--yes")
    assert (wrong.code, len(wrong.err.splitlines())) == (2, 1)
    assert "there-is-none" in wrong.err
    with Path("runs/two/records.jsonl").open() as locked_journal:
        fcntl.flock(locked_journal, fcntl.LOCK_EX)
        assert keju("rm", "one", "two", "--yes").code != 0
    assert "runs/one, runs/two" in keju("rm", "one", "two").err
    for language, message in (
        ("en", "delete runs/one, runs/two with all their replies? [y/N] "),
        ("zh", "删除 2 次运行及其全部回复：runs/one、runs/two？[y/N] "),
    ):
        monkeypatch.setattr("sys.stdin", EndpointRequest("n\n"))
        kept_runs = keju("rm", "one", "runs/two", "--language", language)
        assert (kept_runs.code, kept_runs.err) == (0, message)
    assert {path.name for path in Path("runs").iterdir()} == {"one", "two", "three"}
    monkeypatch.setattr("sys.stdin", EndpointRequest("y\n"))
    removed = keju("rm", "one", "runs/two", "runs/one", "--json")
    assert removed.json == {"removed": ["runs/one", "runs/two"]}
    assert keju("rm", "three", "--yes", "--json").json == {"removed": "runs/three"}
    assert not list(Path("runs").iterdir())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_knows_commands_and_flags(keju: Keju, shell: str) -> None:
    script = keju("completion", shell).out
    assert "vf-eval" in script
    assert "failed-of" in script


def test_bash_completes(keju: Keju) -> None:
    script = keju("completion", "bash").out
    words = 'COMP_WORDS=(keju eval --failed); COMP_CWORD=2; _keju; echo "${COMPREPLY[*]}"'
    process = subprocess.run(["bash", "-c", f"{script}\n{words}"], capture_output=True, text=True)
    assert process.stdout.strip() == "--failed-of"


def test_scripted_guesses_otherwise_under_another_seed(keju: Keju) -> None:
    def texts(*flags: str) -> list[str]:
        folder = Path("runs", keju(*DEMO, *flags).json["run"])
        lines = (folder / "records.jsonl").read_text("utf-8").splitlines()
        rows = sorted((row["id"], row["reply"]["text"]) for row in map(json.loads, lines))
        return [text for _, text in rows]

    plain = texts()
    assert texts("--seed", "42") == plain
    assert texts("--seed", "7") == texts("--seed", "7") != plain
