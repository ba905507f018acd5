from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.config import TaskConfig
from keju.errors import UsageError
from keju.messages import Language
from keju.reporting.html import write_report
from keju.results.schema import from_document
from keju.runs.manifest import Manifest
from keju.task import run_exams
from keju.types import Record, Sample, Usage
from tests.reporting.documents import (
    MANIFEST,
    document,
    entry,
    lookup,
    no_questions,
    outcomes,
    record,
    results,
)
from tests.support.parsed_report import ParsedReport


def page(
    tmp_path: Path,
    records: list[Record],
    results_document: dict[str, Any] | None = None,
    *,
    questions: Any = lookup,
    language: Language = "en",
) -> tuple[str, ParsedReport]:
    output = tmp_path / "new" / "report.html"
    typed = from_document(results_document or document())
    answers = [(questions(record.bench, record.id), record) for record in records]
    write_report(typed, answers, output, manifest=MANIFEST, language=language)
    source = output.read_text(encoding="utf-8")
    return source, ParsedReport(source)


def test_one_file_without_scripts_and_without_network(tmp_path: Path) -> None:
    source, parsed = page(tmp_path, [record(1), record(2, "correct")])
    assert source.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(parsed.tags)
    assert parsed.links
    assert all(link.startswith("#") for link in parsed.links)
    assert "@import" not in source
    assert not re.search(r"url\s*\(", source)
    assert "default-src 'none'" in source
    for anchor in parsed.links:
        assert f'id="{anchor[1:]}"' in source or anchor == "#successes"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_time_is_shown_as_a_clock_does_and_kept_exact_for_programs(
    tmp_path: Path, language: Language
) -> None:
    stamp = "2026-11-17T20:00:33.123456+00:00"
    clock = datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    output = tmp_path / "report.html"
    for created, clock_time in (
        (stamp, f'<time datetime="{stamp}">{clock}</time>'),
        ("<b>a Tuesday", "&lt;b&gt;a Tuesday"),
    ):
        manifest = msgspec.structs.replace(MANIFEST, created=created)
        write_report(results(), [], output, manifest=manifest, language=language)
        settings = output.read_text("utf-8").partition('id="settings"')[2].partition("<details")[0]
        assert clock_time in settings
        assert f">{stamp}" not in settings


def test_the_number_its_interval_and_what_it_is(tmp_path: Path) -> None:
    _, parsed = page(tmp_path, [])
    for words in (
        "51.2 % ± 13.0 mean of 27 subsets 95 % interval 38.0–64.0 · guessing gives 31.0 %",
        "9 clusters, design effect 1.50; partial",
        "27 correct · 24 incorrect · 3 unparsed",
        "45.00 % to 55.00 %",
        "3 of 60 replies (5.0%) hold no answer",
        "human average",
        "Chance 31.0 %",
    ):
        assert words in parsed.text
    assert "No stored answers were given" in parsed.text


def test_bars_are_drawn_with_interval_chance_and_reference(tmp_path: Path) -> None:
    source, _ = page(tmp_path, [])
    rows = source[source.index(">snarks<") : source.index(">高等数学<")]
    assert '<rect class="bar" width="50.00%"' in rows
    assert 'x1="29.93%" x2="70.07%"' in rows
    assert '<line class="chance" x1="50.00%"' in rows
    assert '<line class="reference-0" x1="76.70%"' in rows
    empty = source[source.index(">logical_<wbr>deduction_<wbr>seven_<wbr>objects<") :]
    assert 'class="bar"' not in empty[: empty.index("</tr>")]


def test_failures_come_before_successes_with_what_was_read(tmp_path: Path) -> None:
    records = [record(1, "correct", value="(A)"), record(2), record(3, "error")]
    source, parsed = page(tmp_path, records)
    assert source.index("bbh_snarks_2") < source.index("bbh_snarks_1<")
    for words in (
        "Question number 2 of snarks?",
        "A. the first option ✓",
        "B. the second option ✗",
        "Model's answer (B) (reader paper, another wording of the marker)",
        "Right answer (A)",
        "So the answer is (B).",
        "Error: timeout no answer within 600 s",
    ):
        assert words in parsed.text


def test_everything_of_a_reply_is_escaped(tmp_path: Path) -> None:
    attack = "<script>alert(1)</script><img src=http://x onerror=y>{{ 7*7 }}</style>\x00\x1b[31m"
    source, parsed = page(tmp_path, [record(1, text=attack, reasoning=attack, value=attack)])
    assert "script" not in parsed.tags
    assert "img" not in parsed.tags
    assert "<script>alert(1)</script>" in parsed.text
    assert "{{ 7*7 }}" in parsed.text
    assert "\x1b" not in source
    assert "\x00" not in source


def test_names_in_the_results_are_escaped_too(tmp_path: Path) -> None:
    nasty = '"><script>x</script>'
    results = document(entry(name=nasty, reader=nasty, warnings=[nasty]), stopped=nasty)
    _, parsed = page(tmp_path, [record(1)], results | {"model": nasty, "run": nasty})
    assert "script" not in parsed.tags


def test_reasoning_is_folded(tmp_path: Path) -> None:
    source, _ = page(tmp_path, [record(1, reasoning="a chain of thought")])
    folded = re.search(
        r"<details><summary>(.*?)</summary>(.*?)</details>",
        source[source.index('<details class="case"') :],
        re.S,
    )
    assert folded
    assert '<span lang="en">Reasoning (18 characters)</span>' in folded[1]
    assert "a chain of thought" in folded[2]


def test_long_replies_are_folded_and_subsets_lead_to_their_failures(tmp_path: Path) -> None:
    long = "So it goes on. " * 100
    cases = [record(1), record(2, text=long), record(3, subset="高等数学"), record(4, "correct")]
    source, parsed = page(tmp_path, cases)
    assert "Reply (1,500 characters)" in parsed.text
    assert source.count('<details><summary><span lang="en">Reply') == 1
    links = dict(re.findall(r'<td class="title"><a href="#(failed-\d+)">(.*?)</a>', source))
    assert [*links.values()] == ["snarks", "高等数学"]
    for anchor, subset in links.items():
        before = source.partition(f'<div id="{anchor}">')[0]  # it is opened by the link
        assert f"bbh_{subset}_" in before[before.rindex("<summary>") :]
    for link in parsed.links:
        assert f'id="{link.removeprefix("#")}"' in source


def test_bars_stand_beside_the_names_and_chinese_heads_stay_whole(tmp_path: Path) -> None:
    """On a narrow screen a table is scrolled, and its first two columns are what is seen."""
    source, _ = page(tmp_path, [record(1)])
    for row in re.findall(r"<tr><td>.*?</tr>", source.partition('<table class="wide">')[2], re.S):
        if "<svg" in row:
            assert row.index('class="chart"') < row.index('class="number"')
    assert re.search(r"\.wide th {[^}]*word-break: keep-all", source)


def test_a_missing_question_is_said_to_be_missing(tmp_path: Path) -> None:
    _, parsed = page(tmp_path, [record(1)], questions=no_questions)
    assert "The question's data is not at hand." in parsed.text


def test_canaries_are_never_shown(tmp_path: Path) -> None:
    guid = "26b5c67b-86b7-4d4c-8c9f-0123456789ab"
    line = f"task data; canary GUID {guid}"

    def with_canary(bench: str, sample_id: str) -> Sample | None:
        return Sample(id=sample_id, subset="snarks", index=0, text=f"Which?\n{line}", target="(A)",
                      choices=(line, "b"))  # fmt: skip

    hidden_record = record(1, text=f"I know this.\n{line}", reasoning=line, value=line)
    source, parsed = page(tmp_path, [hidden_record], questions=with_canary)
    assert guid not in source
    assert "Which?" in parsed.text
    assert "I know this." in parsed.text


def test_secrets_in_a_manifest_are_masked(tmp_path: Path) -> None:
    source, parsed = page(tmp_path, [])
    assert "sk-marked-key" not in source
    for words in (
        "temperature 0.25",
        "max_tokens 2048",
        "Seed 7",
        "2 files, together",
        "keju 0.1.0",
    ):
        assert words in parsed.text


def test_the_page_is_bounded_however_many_fail(tmp_path: Path) -> None:
    def failing_records() -> Iterator[tuple[Sample | None, Record]]:
        for number in range(5000):
            yield None, record(number, text="<>&" * 20_000, reasoning="r" * 50_000)

    results = from_document(document(entry(outcomes=outcomes(incorrect=5000))))
    output = tmp_path / "report.html"
    write_report(results, failing_records(), output, manifest=MANIFEST, language="en")
    source = output.read_text(encoding="utf-8")
    assert output.stat().st_size < 8_000_000
    assert source.count('<details class="case"') <= 220
    parsed = ParsedReport(source)
    assert "of 5,000 answers that were not correct" in parsed.text
    assert "more characters" in parsed.text
    assert "keju export tuesday --format jsonl --full-text" in parsed.text


def test_the_chinese_page_speaks_chinese(tmp_path: Path) -> None:
    records = [
        record(1, reasoning="x"),
        record(2, "unparsed"),
        record(3, "correct"),
        record(4, "error"),
    ]
    values = {"part": 3, "whole": 60, "share": 0.05}
    noticed_entry = entry(notices=[{"code": "unread_replies", "values": values}])
    source, parsed = page(tmp_path, records, document(noticed_entry, complete=False), language="zh")
    assert parsed.language == "zh-CN"
    for words in ("准确率，按子集平均（宏平均）", "95 % 置信区间", "未读出答案", "各子集",
                  "未答对的题", "答对的题", "正确答案", "推理过程", "决定这些数字的设置", "人类平均",
                  "60 个回复中有 3 个（5.00 %）读不出答案", "运行尚未完成"):  # fmt: skip
        assert words in parsed.text
    page_text = parsed.text
    for label in ("Outcomes", "Subsets", "Failures", "Target", "Reply", "Settings", "interval",
                  "incorrect", "unparsed (", "Question "):  # fmt: skip
        assert label not in re.sub("Question number| / (incorrect|unparsed)", "", page_text)
    assert source.index("未答对的题") < source.index("bbh_snarks_3")


def test_readers_that_disagree_are_listed(tmp_path: Path) -> None:
    rows = [
        {"id": f"bbh_snarks_{n}", "subset": "snarks", "target": "(A)", "answers": {"paper": None, "robust": "(A)"},
         "outcomes": {"paper": "unparsed", "robust": "correct"}} for n in range(30)
    ]  # fmt: skip
    results = document(entry("paper"), entry("robust"), disagreements=rows)
    _, parsed = page(tmp_path, [], results)
    assert "20 of 30 disagreements" in parsed.text
    assert "keju score tuesday --reader paper,robust --json" in parsed.text
    assert "Id Right answer paper robust bbh_ snarks_0 (A) unparsed (A) correct" in parsed.text


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ("errors: 5 server (HTTP 500: <boom>)", "By category", "Category", "RNA-seq 25.0 % – 8")),
        ("zh", ("出错原因：服务器出错 5 个（HTTP 500: <boom>）", "按类别", "RNA-seq 25.0 % – 8")),
    ],
)  # fmt: skip
def test_kinds_of_errors_and_of_questions(
    tmp_path: Path, language: Language, words: tuple[str, ...]
) -> None:
    benchmark = entry(errors={"kinds": {"server": 5}, "example": "HTTP 500: <boom>"})
    benchmark["metrics"]["accuracy[category=RNA-seq]"] = {"value": 0.25, "ci95": None, "n": 8}
    source, parsed = page(tmp_path, [], document(benchmark), language=language)
    for text in words:
        assert text.casefold() in parsed.text.casefold()
    assert "accuracy[" not in source


def test_credentials_of_urls_in_a_manifest_are_not_shown(tmp_path: Path) -> None:
    url = "https://user:marked@h/v1?key=marked"
    config = {"config": {"api_url": url, "judge": {"api_url": url}, "other": [url]}}
    output = tmp_path / "report.html"
    manifest = msgspec.convert(config, Manifest)
    write_report(results(), [], output, manifest=manifest)
    assert "marked" not in output.read_text()
    assert "https://h/v1" in output.read_text()


def test_an_old_report_stays_when_writing_fails(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    output.write_text("old")

    def broken() -> Iterator[tuple[Sample | None, Record]]:
        yield None, record(1)
        raise RuntimeError("the journal cannot be read")

    with pytest.raises(RuntimeError):
        write_report(results(), broken(), output, manifest=Manifest(), language="en")
    assert output.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        write_report(results(), [], tmp_path / "file" / "report.html", manifest=Manifest())
    with pytest.raises(UsageError, match="it is a folder"):
        write_report(results(), [], tmp_path, manifest=Manifest())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_a_real_run(tmp_path: Path, language: Language) -> None:
    config = TaskConfig(
        model="scripted", datasets=["demo"], limit=10, work_dir=str(tmp_path), run_id="r", language=language
    )  # fmt: skip
    finished = run_exams(config)
    parsed = ParsedReport((finished.folder / "report.html").read_text(encoding="utf-8"))
    value = finished.document["benchmarks"][0]["metrics"]["accuracy"]["value"]
    assert f"{value * 100:.1f} %" in parsed.text
    assert "details" in parsed.tags
    assert finished.document["benchmarks"][0]["warnings"]
    assert ("hold no answer" in parsed.text) == (language == "en")


def test_the_contents_and_the_overview_name_the_arm(tmp_path: Path) -> None:
    source, _ = page(tmp_path, [], document(entry(arm="baseline"), entry(arm="calc")))
    for arm in ("baseline", "calc"):
        assert len(re.findall(rf'<a href="#result-\d">BBH · {arm}</a>', source)) == 1
        assert f"<td>{arm}</td>" in source


def test_a_page_shows_prompts_as_sent_once_for_what_they_share(tmp_path: Path) -> None:
    config = TaskConfig(
        model="scripted", datasets=["demo"], run_id="r", work_dir=str(tmp_path), limit=3
    )
    run_exams(config)
    source = (tmp_path / "r" / "report.html").read_text("utf-8")
    parsed = ParsedReport(source)
    failures = source.count('<details class="case" data-outcome=')
    assert source.count('<summary><span lang="en">Prompt as sent') == failures > 6
    links = re.findall(r'href="#(prompt-\d+)"', source)
    assert len(links) == failures > len(set(links)) == 6  # a subset has one
    assert sorted(set(links)) == sorted(re.findall(r'id="(prompt-\d+)"', source))
    assert "This reply answers another prompt" not in parsed.text


def test_a_page_shows_what_replies_took(tmp_path: Path) -> None:
    records = []
    for number in range(40):
        bare_record = record(number)
        reply = msgspec.structs.replace(
            bare_record.reply, seconds=0.1 * number, usage=Usage(9, 3 * number)
        )
        records.append(msgspec.structs.replace(bare_record, reply=reply))
    source, parsed = page(tmp_path, records)
    assert "40 replies, median 1.95, 95th percentile 3.71, most 3.9" in parsed.text
    assert "40 replies, median 58.5" in parsed.text
    assert source.count('class="columns"') == 2
    assert "Time and tokens of replies" not in page(tmp_path, [record(1, "error")])[1].text


def test_a_page_shows_how_far_judges_agree(tmp_path: Path) -> None:
    usage = {"requests": 3, "input_tokens": 0, "output_tokens": 0}
    judge = {
        "model": "judge-a", "strategy": "llm", "protocol": "p", "protocol_version": "2",
        "judged": 50, "ungraded": 2, "usage": usage, "cost": None, "repeats": 3, "ties": 1,
        "verdicts": {"correct": 30, "incorrect": 18},
        "agreement": {"self_consistency": 0.91, "second": {
            "model": "judge-b", "n": 48, "disagreements": 6, "observed": 0.875, "kappa": 0.73}},
        "quality": {"sensitivity": 0.9, "specificity": 0.8, "positives": 20, "negatives": 10,
                    "unjudged": 0},
    }  # fmt: skip
    _, parsed = page(tmp_path, [], document(entry(judge=judge)))
    for words in (
        "50 judged, 2 without a verdict",
        "correct 30, incorrect 18",
        "91.00 % of pairs among 3 repeats; 1 tie",
        "Agreement with judge-b kappa 0.73; 87.50 % of 48 answers agree, 6 differ",
        "finds 90.00 % of 20 right ones, rejects 80.00 % of 10 wrong ones",
    ):
        assert words in parsed.text


def test_several_exams_begin_with_a_chart_of_all(tmp_path: Path) -> None:
    two_exams = document(entry(), entry(name="other"))
    source, parsed = page(tmp_path, [], two_exams)
    overview = source[source.index('id="overview"') : source.index('id="result-0"')]
    assert overview.count('class="plot"') == 2
    assert "How well does some-model do on BBH and other?" in parsed.text


def test_subsets_below_chance_are_coloured_and_named(tmp_path: Path) -> None:
    benchmark = entry()
    benchmark["subsets"][0] |= {"accuracy": 0.3, "ci95": [0.2, 0.4], "chance": 0.5}
    source, parsed = page(tmp_path, [], document(benchmark))
    rows = re.findall(r'<tr class="below-chance">.*?</tr>', source, re.DOTALL)
    assert rows
    assert all("snarks" in row and "below chance" in row for row in rows)
    assert "shaded: the whole interval is below chance" in parsed.text
    plain_source, _ = page(tmp_path, [])
    assert '<tr class="below-chance">' not in plain_source


def test_warnings_are_sentences_without_commands(tmp_path: Path) -> None:
    values = {"run": "tuesday", "part": 3, "whole": 60, "share": 0.05}
    noticed_entry = entry(
        notices=[{"code": "unread_replies", "values": values}],
        warnings=["3 of 60 replies hold no answer: keju audit tuesday shows which"],
    )
    source, parsed = page(tmp_path, [record(1), record(2, "unparsed")], document(noticed_entry))
    sentence = (
        "3 replies contain no answer that the reader could find (5.0 %). They count as wrong."
    )
    assert f"{sentence} Show them" in parsed.text
    card = source[source.index('id="overview"') : source.index('id="result-0"')]
    assert "keju " not in card
    assert re.search(r'href="#only-\d+"', card)
    assert "keju audit tuesday" in parsed.text  # folded, with what to type


def test_the_mark_of_chance_is_grey_and_no_colour_of_a_series() -> None:
    from keju.reporting.figure import style

    rules = dict(re.findall(r"\.([\w-]+) \{ ([^}]*) \}", style(dark=False)))
    series = {rules[name] for name in rules if name.startswith("series-")}
    stroke = re.search(r"stroke: (#\w+)", rules["chance"])
    assert stroke
    red, green, blue = (int(stroke[1][n : n + 2], 16) for n in (1, 3, 5))
    assert max(red, green, blue) - min(red, green, blue) < 16
    assert not any(stroke[1] in rule for rule in series)
