"""One run is one thing: what may go on under its name, what is refused, and what is told."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from keju.runs.journal import FILE, Records
from keju.types import Answer
from tests.cli.conftest import Keju, Ran
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import JUDGED, RIGHT, candidate_or_verdict
from tests.support.open_exam import SIZE
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow

ARGS = {"size": 20, "subset_list": ["object_counting"]}
RUN = Path("runs", "r")


def answer(request: EndpointRequest) -> str:
    return f"So the answer is ({'ABCD'[int(draw(request.text) * 4)]})."


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers=answer)


class Evaluate:
    """``keju eval`` of the same run, with more or other flags each time."""

    def __init__(self, keju: Keju, endpoint: FaultyEndpoint) -> None:
        self._keju, self.endpoint = keju, endpoint

    def __call__(self, *flags: str, url: str = "", model: str = "m", **args: Any) -> Ran:
        exam_args = json.dumps({"demo": ARGS | args})
        exams = () if "--datasets" in flags else ("--datasets", "demo")
        return self._keju(
            *("eval", "-m", model, "--api-url", url or self.endpoint.url, "--run-id", "r"),
            *(*exams, "--dataset-args", exam_args, "--json", "--no-report", *flags),
        )


@pytest.fixture
def evaluate(keju: Keju, endpoint: FaultyEndpoint) -> Evaluate:
    return Evaluate(keju, endpoint)


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(RUN.iterdir())}


@pytest.mark.parametrize(
    ("flags", "difference"),
    [
        (("--generation-config", "temperature=0.7"), "demo temperature: stored 0.0, asked 0.7"),
        (("--generation-config", "max_tokens=9"), "demo max_tokens: stored 64, asked 9"),
        (("--protocol", "letters"), "(demo protocol: stored text, asked letters)"),
        (("--seed", "7"), "seed: stored 42, asked 7"),
        (("--limit", "3"), "limit: stored 5, asked 3"),
        (("--datasets", "demo", "--limit", "0.1"), "limit: stored 5, asked 0.1"),
    ],
)
def test_a_run_that_would_become_another_is_refused_with_the_differences(
    evaluate: Evaluate, flags: tuple[str, ...], difference: str
) -> None:
    assert evaluate("--limit", "5", subset_list=["object_counting", "word_sorting"]).code == 0
    before, requests = contents(), evaluate.endpoint.stats.requests
    limit_flags = () if "--limit" in flags else ("--limit", "5")
    refusal = evaluate(*flags, *limit_flags, subset_list=["object_counting", "word_sorting"])
    assert refusal.code == 2
    assert difference in refusal.err
    assert "--replace" in refusal.err
    assert refusal.err.count("\n") == 1
    assert evaluate.endpoint.stats.requests == requests
    assert contents() == before


def test_another_model_is_refused(evaluate: Evaluate) -> None:
    assert evaluate("--limit", "5").code == 0
    refusal = evaluate("--limit", "5", model="n")
    assert (refusal.code, "model: stored m, asked n" in refusal.err) == (2, True)


def test_a_subset_or_an_exam_that_is_left_out_is_refused(keju: Keju, evaluate: Evaluate) -> None:
    both_kinds = ["object_counting", "word_sorting"]
    assert evaluate("--limit", "5", subset_list=both_kinds).code == 0
    refusal = evaluate("--limit", "5")
    assert refusal.code == 2
    assert "5 stored replies of run 'r' would not count any more" in refusal.err
    assert 'subset_list: stored ["object_counting","word_sorting"]' in refusal.err
    Path("quiz").mkdir()
    Path("quiz", "quiz_val.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    grown = evaluate("--limit", "5", "--datasets", "demo", "custom:quiz", subset_list=both_kinds)
    assert grown.code == 0, grown.err
    refusal = evaluate("--limit", "5", subset_list=both_kinds)
    assert refusal.code == 2
    assert "datasets: stored [" in refusal.err


def test_a_run_that_grows_says_so_and_counts_before_it_asks(evaluate: Evaluate) -> None:
    assert evaluate("--limit", "5").code == 0
    evaluate.endpoint.plan = Plan(answers=answer, faults={"401": 1.0})
    growths: list[tuple[tuple[str, ...], dict[str, Any], str, str]] = [
        (("--limit", "8"), {}, "limit: stored 5, asked 8", "5 of 8 replies are there, 3 will be"),
        (("--limit", "5", "--repeats", "2"), {}, "repeats: stored 1, asked 2", "5 of 10 replies"),
        (
            ("--limit", "5"),
            {"subset_list": ["object_counting", "word_sorting"]},
            "demo subset_list: stored",
            "5 of 10 replies are there, 5 will be asked",
        ),
    ]
    for flags, args, difference, counts in growths:
        grown = evaluate(*flags, **args)
        assert grown.code == 5, "nobody answered"
        assert difference in grown.err
        assert counts in grown.err
    evaluate.endpoint.plan = Plan(answers=answer)
    requests_before = evaluate.endpoint.stats.requests
    largest = evaluate("--limit", "8", "--repeats", "2")
    assert largest.code == 0, largest.err
    assert evaluate.endpoint.stats.requests == requests_before + 11 + 1  # the preflight
    assert largest.json["benchmarks"][0]["n"] == 8


def test_a_run_without_any_reply_may_begin_otherwise(evaluate: Evaluate) -> None:
    evaluate.endpoint.plan = Plan(answers=answer, max_requests=1)
    stopped = evaluate("--limit", "5", "--attempts", "1", "--give-up-after", "0.1")
    assert stopped.code == 4
    assert not [record for record in Records(RUN) if record.reply.error is None]
    (RUN / FILE).write_bytes(b"")
    evaluate.endpoint.plan = Plan(answers=answer)
    assert evaluate("--limit", "3", "--generation-config", "temperature=0.7").code == 0


def test_replace_starts_over_and_keeps_the_earlier_run(evaluate: Evaluate, keju: Keju) -> None:
    assert evaluate("--limit", "5").code == 0
    before = contents()
    warm = ("--limit", "3", "--generation-config", "temperature=0.7", "--replace")
    for number in (1, 2):
        replaced = evaluate(*warm)
        assert replaced.code == 0, replaced.err
        aside = Path("runs", f"r.replaced-{number}")
        assert str(aside) in replaced.err
        assert replaced.json["benchmarks"][0]["n"] == 3
    moved_run = Path("runs", "r.replaced-1")
    assert {path.name: path.read_bytes() for path in sorted(moved_run.iterdir())} == before
    assert "replace" not in json.loads((RUN / "manifest.json").read_text())["config"]
    resumed = keju("eval", "--config", str(RUN / "manifest.json"), "--resume", "--json", "-q")
    assert resumed.code == 0
    assert not Path("runs", "r.replaced-3").exists()


def test_a_run_is_put_back_where_its_replacement_never_began(evaluate: Evaluate) -> None:
    assert evaluate("--limit", "5").code == 0
    before = contents()
    evaluate.endpoint.plan = Plan(answers=answer, faults={"401": 1.0})
    assert evaluate("--limit", "3", "--replace").code == 5
    assert contents() == before
    assert [path.name for path in Path("runs").iterdir()] == ["r"]


def test_replace_has_no_place_beside_resume(evaluate: Evaluate) -> None:
    refusal = evaluate("--resume", "--replace")
    assert (refusal.code, "replace needs the run_id" in refusal.err) == (2, True)


def test_replace_moves_no_folder_that_is_no_run(evaluate: Evaluate) -> None:
    RUN.mkdir(parents=True)
    (RUN / "thesis.tex").write_text("years of work")
    refusal = evaluate("--limit", "1", "--replace")
    assert (refusal.code, "holds files and no run" in refusal.err) == (2, True)
    assert (RUN / "thesis.tex").is_file()


def test_eval_does_not_go_on_with_an_imported_run(keju: Keju, endpoint: FaultyEndpoint) -> None:
    fixtures = Path(__file__).parent.parent / "interop" / "imports" / "fixtures"
    shutil.copytree(fixtures / "data", "data")
    log = str(fixtures / "evalscope")
    assert keju("import", log, "--data-dir", "data", "--run-id", "r").code == 0
    before = contents()
    base = ("eval", "-m", "tiny-chat", "--api-url", endpoint.url, "--datasets", "bbh", "-q")
    args = ("--run-id", "r", "--data-dir", "data", "--limit", "1", "--dataset-args")
    subsets = '{"bbh": {"subset_list": ["boolean_expressions"], "few_shot_num": 0}}'
    refusal = keju(*base, *args, subsets)
    assert refusal.code == 2
    assert "run 'r' was imported from evalscope 1.14.1" in refusal.err
    assert contents() == before
    assert keju(*base, *args, subsets, "--replace").code == 0
    assert Path("runs", "r.replaced-1", "import.json").is_file()


def test_an_imported_runs_manifest_holds_no_setting_that_was_not_in_force(keju: Keju) -> None:
    fixtures = Path(__file__).parent.parent / "interop" / "imports" / "fixtures"
    shutil.copytree(fixtures / "data", "data")
    argv = ("import", str(fixtures / "evalscope"), "--data-dir", "data", "--run-id", "r")
    assert keju(*argv).code == 0
    manifest = json.loads((RUN / "manifest.json").read_text())
    assert "seed" not in manifest["config"]
    by_name = {exam["name"]: exam["settings"] for exam in manifest["benchmarks"]}
    prompts = "as evalscope 1.14.1 wrote them"
    assert by_name["bbh"] == {"few_shot_num": 0, "prompts": prompts}
    assert by_name["mmlu_pro"] == {"few_shot_num": 2, "prompts": prompts}
    expected_args = {"split": "val", "few_shot_num": 1, "mode": "cot", "prompts": prompts}
    assert by_name["ceval"] == expected_args
    assert keju("judge", "r", "--model", "scripted", "--strategy", "llm", "-q").code in (0, 4)
    judged = json.loads((RUN / "manifest.json").read_text())
    assert judged["benchmarks"] == manifest["benchmarks"]
    assert judged["config"] == manifest["config"]


def test_two_models_behind_one_name_are_told_on_every_result(
    evaluate: Evaluate, keju: Keju
) -> None:
    evaluate.endpoint.plan = Plan(answers=answer, model_name="m-2024", max_requests=4)
    stopped = evaluate("--limit", "6", "--attempts", "1", "--give-up-after", "0.1")
    assert stopped.code == 4
    with FaultyEndpoint(Plan(answers=answer, model_name="m-2025")) as other_endpoint:
        ran = evaluate("--limit", "6", url=other_endpoint.url)
        other_url = other_endpoint.url
    assert ran.code == 0, ran.err
    sentence = "2 models by what the endpoint called them: m-2024 (3), m-2025 (3)"
    notice = {"models": 2, "counts": "m-2024 (3), m-2025 (3)"}
    for results in (ran.json, keju("score", "r", "--json").json):
        (entry,) = results["benchmarks"]
        assert any(sentence in warning for warning in entry["warnings"])
        assert {"code": "reported_models", "values": notice} in entry["notices"]
    first_session, last_session = json.loads((RUN / "manifest.json").read_text())["sessions"]
    assert (first_session["endpoint"], first_session["models"]) == (
        evaluate.endpoint.url,
        {"m-2024": 3},
    )
    assert (last_session["endpoint"], last_session["models"]) == (other_url, {"m-2025": 3})


def test_one_model_under_one_name_is_no_news(evaluate: Evaluate) -> None:
    codes = [notice["code"] for notice in evaluate("--limit", "3").json["benchmarks"][0]["notices"]]
    assert "reported_models" not in codes
    assert "replies_missing" not in codes


def test_resume_keeps_the_protocol_and_says_with_which_version_it_reads(
    evaluate: Evaluate, keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keju.benchmarks.demo import MarkerReader

    assert evaluate("--limit", "3").code == 0
    version = MarkerReader.version
    monkeypatch.setattr(MarkerReader, "version", 99)
    ran = evaluate("--limit", "3", "--resume")
    assert ran.code == 0
    versions = f"@99 (stored: @{version})"
    assert versions in ran.err
    assert any(versions in warning for warning in ran.json["benchmarks"][0]["warnings"])


def test_resume_goes_on_under_the_protocol_of_the_run(evaluate: Evaluate, keju: Keju) -> None:
    base = ("eval", "-m", "scripted", "--run-id", "r", "--datasets", "demo", "--limit", "1", "-q")
    assert keju(*base, "--protocol", "letters").code == 0
    assert keju(*base).code == 2
    resumed = keju(*base, "--resume", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["benchmarks"][0]["protocol"] == "letters"


def test_eval_asks_no_judge_that_it_does_not_name(keju: Keju, open_exam: None) -> None:
    judges = 0

    def counted(request: EndpointRequest) -> str:
        nonlocal judges
        judges += request.body["model"] == "judge"
        return candidate_or_verdict(request)

    with FaultyEndpoint(Plan(answers=counted)) as endpoint:
        base = ("eval", "-m", "m", "--api-url", endpoint.url, "--datasets", "open", "--run-id", "r")
        part = str(SIZE // 2)
        assert keju(*base, "--limit", part, "-q").code == 3, "most answers have no grade"
        judged = keju("judge", "r", "--model", "judge", "--json", "-q")
        assert judged.code == 0, judged.err
        judge_calls = judges
        assert judge_calls > 0
        correct = judged.json["benchmarks"][0]["outcomes"]["correct"]
        rerun = keju(*base, "--limit", part, "--json", "-q")
        grown = keju(*base, "--json", "-q")
        resumed = keju("eval", "--config", "runs/r/manifest.json", "--resume", "--json", "-q")
        assert judges == judge_calls, "no command named the judge"
        (entry,) = rerun.json["benchmarks"]
        assert entry["outcomes"]["correct"] == correct
        for ran in (rerun, grown, resumed):
            notices = [notice["code"] for notice in ran.json["benchmarks"][0]["notices"]]
            assert "judge_not_asked" in notices
        assert grown.json["benchmarks"][0]["judge"]["judged"] < JUDGED
        finished = keju("judge", "r", "--json", "-q")
        assert finished.code == 0, finished.err
        assert finished.json["benchmarks"][0]["outcomes"]["correct"] == RIGHT
        with_judge = keju(*base, "--judge", '{"model": "judge"}', "--json", "-q")
        assert with_judge.json["benchmarks"][0]["outcomes"]["correct"] == RIGHT


def edited(lines: list[bytes], count: int) -> list[bytes]:
    """The lines, with another letter in the texts of the first of them."""
    for place in range(count):
        for letter, other_letter in (b"AB", b"BC", b"CD", b"DA"):
            text = lines[place].replace(
                b"answer is (%c)" % letter, b"answer is (%c)" % other_letter, 1
            )
            if text != lines[place]:
                lines[place] = text
                break
    return lines


def without_checksums(lines: list[bytes]) -> list[bytes]:
    """The lines as version 0.1 wrote them."""
    return [line.rpartition(b',"crc":')[0] + b"}\n" for line in lines]


def accuracy(results: Any) -> float:
    value: float = results["benchmarks"][0]["metrics"]["accuracy"]["value"]
    return value


def test_edited_replies_are_found_out_and_asked_again(evaluate: Evaluate, keju: Keju) -> None:
    honest = accuracy(evaluate("--limit", "20").json)
    lines = (RUN / FILE).read_bytes().splitlines(keepends=True)
    (RUN / FILE).write_bytes(b"".join(edited(lines, 8)))
    scored = keju("score", "r", "--json")
    (entry,) = scored.json["benchmarks"]
    assert entry["n"] == 12
    values = {"part": 12, "whole": 20}
    assert {"code": "damaged_lines", "values": {"lines": 8}} in entry["notices"]
    assert {"code": "replies_missing", "values": values} in entry["notices"]
    requests_before = evaluate.endpoint.stats.requests
    resumed = evaluate("--limit", "20")
    assert evaluate.endpoint.stats.requests == requests_before + 8 + 1
    assert accuracy(resumed.json) == honest
    for ran in (resumed, keju("score", "r", "--json"), evaluate("--limit", "20")):
        (entry,) = ran.json["benchmarks"]
        notice_codes = {notice["code"] for notice in entry["notices"]}
        assert not notice_codes & {"damaged_lines", "replies_missing"}, (
            "what was asked again is there"
        )
    assert "cannot be read" not in keju("export", "r", "-o", "r.csv").err


def test_a_dry_run_says_that_a_run_would_be_refused_or_grow(evaluate: Evaluate) -> None:
    assert evaluate("--limit", "5").code == 0
    before, requests_before = contents(), evaluate.endpoint.stats.requests
    refusal = evaluate("--generation-config", "temperature=0.7", "--limit", "5", "--dry-run")
    assert refusal.code == 2
    assert "demo temperature: stored 0.0, asked 0.7" in refusal.err
    grown = evaluate("--limit", "8", "--dry-run")
    assert (grown.code, grown.json["known"], grown.json["requests"]) == (0, 5, 8)
    assert grown.json["notices"][0]["code"] == "run_grows"
    assert "5 of 8 replies are there, 3 will be asked" in grown.json["warnings"][0]
    assert evaluate("--run-id", "absent", "--resume", "--dry-run").code == 2
    assert (contents(), evaluate.endpoint.stats.requests) == (before, requests_before)


@pytest.mark.parametrize(
    ("first_flags", "larger_flags", "growth"),
    [
        (("--total", "3"), ("--total", "7"), "total: stored 3, asked 7"),
        (("--total", "3"), (), "total: stored 3, asked none"),
        (("--ids", "demo_object_counting_0"), (), 'ids: stored ["demo_object_counting_0"]'),
    ],
)
def test_growth_by_total_and_ids_is_said(
    evaluate: Evaluate, first_flags: tuple[str, ...], larger_flags: tuple[str, ...], growth: str
) -> None:
    assert evaluate(*first_flags).code == 0
    grown = evaluate(*larger_flags)
    assert grown.code == 0, grown.err
    assert f"the run goes on ({growth}" in grown.err


def test_scores_of_0_1_are_never_believed(evaluate: Evaluate, keju: Keju) -> None:
    """Lines without a checksum, whose texts say otherwise than their scores."""
    honest = accuracy(evaluate("--limit", "20").json)
    lines = without_checksums((RUN / FILE).read_bytes().splitlines(keepends=True))
    lines = [re.sub(rb"So the answer is .[A-D].", b"I do not know", line) for line in lines]
    (RUN / FILE).write_bytes(b"".join(lines))
    scored = accuracy(keju("score", "r", "--json").json)
    assert scored < honest
    resumed = evaluate("--limit", "20")
    assert accuracy(resumed.json) == scored
    rows = keju("export", "r", "--format", "jsonl").out.splitlines()
    assert sum(json.loads(row)["score"] for row in rows) / len(rows) == pytest.approx(scored)


def test_scores_that_earlier_readers_made_are_not_believed_later(
    evaluate: Evaluate, keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second session reads with a new version; the third must not take the first's scores."""
    from keju.benchmarks.demo import MarkerReader

    with monkeypatch.context() as broken:
        broken.setattr(MarkerReader, "read", lambda *_: Answer(reason="no_marker"))
        wrong = accuracy(evaluate("--limit", "20").json)
    assert wrong == 0.0
    monkeypatch.setattr(MarkerReader, "version", 99)
    second_run, third = evaluate("--limit", "20"), evaluate("--limit", "20")
    assert accuracy(second_run.json) == accuracy(third.json) > 0
    rows = keju("export", "r", "--format", "jsonl").out.splitlines()
    assert sum(json.loads(row)["score"] for row in rows) / 20 == accuracy(third.json)


def test_an_unfinished_run_is_told_by_every_command(evaluate: Evaluate, keju: Keju) -> None:
    assert evaluate("--limit", "20").code == 0
    lines = (RUN / FILE).read_bytes().splitlines(keepends=True)
    (RUN / FILE).write_bytes(b"".join(lines[:9]))
    (RUN / "results.json").unlink()
    scored = keju("score", "r", "--json")
    assert (scored.code, scored.json["complete"]) == (0, False)
    values = {"part": 9, "whole": 20}
    assert {"code": "replies_missing", "values": values} in scored.json["benchmarks"][0]["notices"]
    sentence = "9 of 20 replies are there"
    assert sentence in keju("score", "r").out
    exported = keju("export", "r", "-o", "r.csv", "--json")
    assert (exported.code, sentence in exported.err) == (0, True)
    assert exported.json["notices"] == [{"code": "replies_missing", "values": values}]
    reported = keju("report", "r", "-o", "r.html")
    assert (reported.code, sentence in reported.err) == (0, True)
    assert sentence in Path("r.html").read_text()
