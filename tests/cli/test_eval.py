"""``keju eval``, ``score`` and ``report`` from beginning to end, on the built-in exam."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint

RUN = ("eval", "--model", "scripted", "--datasets", "demo", "--limit", "2", "--quiet")


def test_results_as_json_are_one_document_and_stand_in_the_folder(
    keju: Keju, tmp_path: Path
) -> None:
    ran = keju(*RUN, "--run-id", "one", "--json")
    assert ran.code == 0, ran.err
    results = ran.json
    assert (results["schema"], results["run"], results["model"]) == (1, "one", "scripted")
    assert results["benchmarks"][0]["n"] == 12
    folder = tmp_path / "runs" / "one"
    assert json.loads((folder / "results.json").read_text()) == results
    assert (folder / "report.html").is_file()


def test_results_for_people(keju: Keju) -> None:
    ran = keju(*RUN, "--run-id", "one", "--no-report")
    assert ran.code == 0
    assert "accuracy" in ran.out
    assert ran.out.endswith(
        "run folder: runs/one\n"
        "next:\n"
        "  keju view one                          # look at the answers in the browser\n"
        "  keju audit one                         # why replies were not, or wrongly, read\n"
        "  keju score one --reader marker,robust  # score the same replies with another reader\n"
        "  keju report one -o report.html         # one page to read and share\n"
        "  keju export one -o answers.csv         # every answer, one row each\n"
    )
    assert ran.err == ""
    assert not Path("runs/one/report.html").exists()


def test_what_is_told_to_do_next_can_be_done(keju: Keju, data_dir: Path) -> None:
    words = ("eval", "-m", "scripted", "--datasets", "bbh", "--limit", "1", "-q")
    ran = keju(*words, "--data-dir", str(data_dir), "--work-dir", "my runs", "--run-id", "two")
    lines = ran.out.splitlines()
    next_commands = [shlex.split(line, comments=True) for line in lines[lines.index("next:") + 1 :]]
    assert "report: my runs/two/report.html" in lines
    assert next_commands == [
        ["keju", "view", "my runs/two"],
        ["keju", "score", "my runs/two", "--reader", "evalscope,robust"],
        ["keju", "export", "my runs/two", "-o", "answers.csv"],
    ]
    for command in next_commands[1:]:
        assert keju(*command[1:], "--data-dir", str(data_dir)).code == 0


def test_a_run_beside_another_of_its_exam_is_told_to_be_compared(keju: Keju) -> None:
    first_run = keju(*RUN, "--run-id", "one")
    assert "keju compare" not in first_run.out
    keju("eval", "-m", "scripted", "--datasets", "fresh_bbh", "--limit", "1", "-q", "--no-report")
    keju(*RUN, "--run-id", "stopped", "--budget", "requests=3")
    out = keju(*RUN, "--run-id", "two").out
    (line,) = [line for line in out.splitlines() if "keju compare" in line]
    command = shlex.split(line, comments=True)
    assert command == ["keju", "compare", "one", "two"]
    assert keju(*command[1:]).code == 0
    assert "与前一次运行逐题比较" in keju(*RUN, "--run-id", "three", "--language", "zh").out


def test_a_run_of_other_questions_is_not_told_to_be_compared(keju: Keju) -> None:
    exam = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report")
    keju(*exam, "--ids", "demo_word_sorting_0", "--run-id", "one")
    for name, choice_flags in (("other", ("--ids", "demo_word_sorting_1")), ("all", ())):
        ran = keju(*exam, *choice_flags, "--run-id", name)
        assert (ran.code, "keju compare" in ran.out) == (0, False), ran
    assert "keju compare all again" in keju(*exam, "--run-id", "again").out


def test_a_run_that_is_read_otherwise_is_not_told_to_be_compared(keju: Keju) -> None:
    """But with the newest one that is read alike."""
    exam = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report")
    keju(*exam, "--run-id", "one")
    other_run = keju(*exam, "--reader", "robust", "--run-id", "other")
    assert (other_run.code, "keju compare" in other_run.out) == (0, False), other_run
    assert keju("compare", "one", "other").code == 3
    assert "keju compare one again" in keju(*exam, "--run-id", "again").out


def test_where_answers_were_not_found_the_audit_is_named(keju: Keju, tmp_path: Path) -> None:
    """By a command that can be typed as it stands, wherever the run is; a file has no run."""
    ran = keju(*RUN, "--work-dir", "my runs", "--run-id", "one")
    (line,) = [line for line in ran.out.splitlines() if "hold no answer" in line]
    command = shlex.split(line.partition("find: ")[2].removesuffix(" shows which, and why"))
    assert command == ["keju", "audit", "my runs/one"]
    assert keju(*command[1:]).code == 0
    rows = [
        json.dumps({"id": f"demo_word_sorting_{n}", "output": "I do not know."}) for n in range(5)
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(rows))
    scored = keju("score", "--datasets", "demo", "--predictions", "p.jsonl")
    assert "keju score --datasets demo --predictions p.jsonl --reader A,B" in scored.out
    assert "audit" not in scored.out


def test_progress_goes_to_stderr(keju: Keju) -> None:
    ran = keju(*(part for part in RUN if part != "--quiet"), "--json")
    assert ran.json["schema"] == 1
    assert "demo: 12 answers" in ran.err


@pytest.mark.parametrize(
    ("exam", "exam_args", "beyond", "hint"),
    [
        ("demo", "demo.size=2", ("--limit", "3"), "--dataset-args demo.size=3"),
        ("demo", "demo.size=2", ("--total", "13"), "--dataset-args demo.size=3"),
        ("fresh_bbh", "fresh_bbh.n=2", ("--limit", "3"), "--dataset-args fresh_bbh.n=3"),
    ],
)
def test_more_questions_than_were_made_are_spoken_of_before_anybody_is_asked(
    keju: Keju, exam: str, exam_args: str, beyond: tuple[str, ...], hint: str
) -> None:
    words = (
        "eval",
        "--model",
        "scripted",
        "--datasets",
        exam,
        "--dataset-args",
        exam_args,
        "--json",
    )
    dry = keju(*words, *beyond, "--dry-run")
    assert [hint in warning for warning in dry.json["warnings"]] == [True]
    warning_lines = keju(*words, *beyond).err.splitlines()
    assert hint in warning_lines[0]
    assert f"{exam}: " in warning_lines[1]
    assert hint.rpartition("=")[0] not in keju(*words, "--limit", "2").err


def test_settings_of_file_environment_and_flags_reach_the_run(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.yaml").write_text(
        "model: scripted\ndatasets: demo\nlimit: 1\ngeneration_config: {max_tokens: 9}\n"
    )
    monkeypatch.setenv("KEJU_RUN_ID", "from-environment")
    ran = keju("eval", "-c", "c.yaml", "--generation-config", "temperature=0.5", "-q", "--json")
    assert ran.code == 0, ran.err
    manifest = json.loads((tmp_path / "runs/from-environment/manifest.json").read_text())
    assert manifest["config"]["generation_config"] == {"max_tokens": 9, "temperature": 0.5}
    assert manifest["config"]["limit"] == 1


def test_the_manifest_resumes_its_run(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_document = keju(*RUN, "--run-id", "one", "--json").json
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ran = keju("eval", "--config", "../runs/one/manifest.json", "--resume", "--json")
    assert ran.code == 0, ran.err
    assert "12 of them reused" in ran.err
    assert ran.json["benchmarks"][0]["metrics"] == first_document["benchmarks"][0]["metrics"]
    assert not (tmp_path / "elsewhere" / "runs").exists()


def test_dry_run_asks_nothing_and_writes_nothing(keju: Keju, tmp_path: Path) -> None:
    ran = keju(*RUN, "--repeats", "3", "--dry-run", "--price", "input=2", "--json")
    assert ran.code == 0, ran.err
    document = ran.json
    assert document["requests"] == 36
    assert document["benchmarks"][0]["first_prompt"][0]["role"] == "user"
    assert document["benchmarks"][0]["sampling"]["temperature"] == 0.0
    tokens = document["prompt_tokens_estimate"]
    assert document["input_cost_estimate"] == pytest.approx(tokens * 2 / 1e6, abs=1e-4)
    assert list(tmp_path.iterdir()) == []
    people = keju(*RUN, "--dry-run")
    assert "12 requests would go to scripted" in people.out


def test_credentials_of_a_url_are_nowhere(keju: Keju, tmp_path: Path) -> None:
    with FaultyEndpoint() as endpoint:
        url = endpoint.url.replace("://", "://user:marked-1@") + "?key=marked-2"
        words = (*RUN[:1], *RUN[3:], "-m", "x", "--api-url", url, "--run-id", "one")
        rehearsed = keju(*words, "--dry-run", "--json")
        assert rehearsed.json["api_url"] == endpoint.url
        ran = keju(*words, "--json")
        assert ran.code == 0, ran.err
    down = keju(*words[:-1], "two")
    assert down.code == 5
    for outcome in (rehearsed, ran, down):
        assert "marked" not in outcome.out + outcome.err
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or "marked" not in path.read_text()


def test_the_key_is_nowhere(keju: Keju, tmp_path: Path) -> None:
    secret = "sk-marked-secret"
    ran = keju(
        *RUN[:1], *RUN[3:], "-m", "x", "--api-url", "http://127.0.0.1:9/v1", "--api-key", secret
    )
    assert ran.code == 5
    assert secret not in ran.err + ran.out
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or secret not in path.read_text()


def test_score_a_run_again(keju: Keju) -> None:
    before = keju(*RUN, "--run-id", "one", "--json").json
    ran = keju("score", "one", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["benchmarks"][0]["outcomes"] == before["benchmarks"][0]["outcomes"]
    assert "accuracy" in keju("score", "runs/one").out


def test_report_of_a_run(keju: Keju, tmp_path: Path) -> None:
    keju(*RUN, "--run-id", "one", "--no-report")
    ran = keju("report", "one", "-o", "out/r.html", "--language", "zh", "--json")
    assert ran.code == 0, ran.err
    assert ran.json == {"run": "one", "report": "out/r.html"}
    assert "<html" in (tmp_path / "out/r.html").read_text()
    assert keju("report", "one").out == f"wrote {Path('runs/one/report.html')}\n"


def test_score_a_file_of_predictions(keju: Keju, data_dir: Path) -> None:
    golden = data_dir / "golden" / "bbh"
    ran = keju(
        "score",
        "--datasets",
        "bbh",
        "--predictions",
        str(golden / "code-davinci-002_answer_only_predictions.jsonl.gz"),
        "--protocol",
        "answer-only",
        "--reader",
        "answer-only,robust",
        "--data-dir",
        str(data_dir),
        "--json",
    )
    assert ran.code == 0, ran.err
    official_entry, robust_entry = ran.json["benchmarks"]
    assert (official_entry["reader"], robust_entry["reader"]) == ("answer-only", "robust")
    assert official_entry["outcomes"]["correct"] == 3408
    assert ran.json["disagreements"]


def test_a_published_reader_reads_a_run_on_as_its_original_does(
    keju: Keju, data_dir: Path, tmp_path: Path
) -> None:
    """EvalScope takes the last marker of the whole reply; only robust cuts at the next question."""
    reply = "So the answer is (A).\n\nQ: Which one?\nA: So the answer is (B)."
    row = {"subset": "snarks", "index": 0, "output": reply, "target": "(A)"}
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    ran = keju(
        "score", "--datasets", "bbh", "--predictions", "p.jsonl", "--gold", "recorded",
        "--reader", "evalscope,paper,robust", "--data-dir", str(data_dir), "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert [b["outcomes"]["correct"] for b in ran.json["benchmarks"]] == [0, 0, 1]
