from __future__ import annotations

import random
import resource
import signal
from array import array
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from keju.errors import UsageError
from keju.runs.run import Run
from keju.types import Fault, Reply
from keju.viewer.condition import ConditionQuery, start_evaluation
from keju.viewer.damage import PageStopped
from keju.viewer.filters import ReplySelection, Sort, find, sort_replies
from keju.viewer.index import ExamArm, LineNumbers, QuestionKeys, ReplyDetails, ReplyIndex
from keju.viewer.search import evaluate_condition, find_text
from tests.viewer.runs import HOSTILE, acting, add, mixed, record, torn, write


def outcomes(index: ReplyIndex) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for (_, kind), n in index.counts().items():
        counts[kind.outcome] += n
    return dict(counts)


def as_the_run_says(folder: Path) -> dict[str, int]:
    return dict(Counter(r.readings[0].score.outcome for _, r in Run(folder).answers()))


@pytest.mark.parametrize("few", [0, 45, 1 << 17])
def test_the_index_counts_what_the_rule_of_runs_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """However the keys are numbered: by a table from the first on, after some, by a dictionary."""
    monkeypatch.setattr("keju.viewer.index.FEW_KEYS", few)
    monkeypatch.setattr("keju.viewer.index._BATCH", 4000)
    lost = Reply(error=Fault("timeout", "no answer"))
    records = [
        *mixed(40),
        record(3, "error", reply=lost),  # an error never takes the place of a reply
        record(50, "error", reply=lost),
        record(50, "correct"),
        record(51, "error", reply=lost),
        record(7, "refused", hash="f" * 32),  # asked otherwise: the last reply counts
    ]
    folder = write(tmp_path / "r", records)
    index = ReplyIndex(folder)
    index.refresh()
    assert index.damaged == 0
    assert outcomes(index) == as_the_run_says(folder)
    assert [r.id for r in index.records(range(len(index)))] == [
        r.id for _, r in Run(folder).answers()
    ]


def test_only_new_bytes_are_read_and_a_torn_line_waits(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", mixed(30))
    index, details = ReplyIndex(folder), ReplyDetails({})
    index.refresh()
    details.refresh(index)
    end = index.end
    with torn(folder, record(30)):
        index.refresh()
        assert (len(index), index.end, index.damaged) == (30, end, 0)
    add(folder, [record(30, "refused"), record(2, "truncated", hash="e" * 32)])
    index.refresh()
    details.refresh(index)
    assert index.generation == 2  # the first reading; nothing was read again
    assert outcomes(index) == as_the_run_says(folder)
    assert details.seconds[index.find(ExamArm("bbh"), "bbh_snarks_30", 0)] == 30.5
    assert len(details.length) == len(index) == 31


def test_a_journal_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", mixed(30))
    index, details = ReplyIndex(folder), ReplyDetails({})
    index.refresh()
    details.refresh(index)
    (folder / "records.jsonl").unlink()
    add(folder, mixed(5, seed=9))
    index.refresh()
    details.refresh(index)
    assert len(index) == len(details.length) == 5
    assert outcomes(index) == as_the_run_says(folder)


def test_lines_that_are_no_record_are_counted(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", mixed(3))
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"bench": "bbh", "id": \n\xff\xfe\n{"kind":"note"}\n')
    add(folder, [record(90, "correct")])
    index = ReplyIndex(folder)
    index.refresh()
    assert (len(index), index.damaged) == (4, 2)


def chosen(folder: Path, **query: str) -> list[str]:
    index, details = ReplyIndex(folder), ReplyDetails({})
    index.refresh()
    details.refresh(index)
    found = find(
        ReplySelection.of(query),
        index,
        lambda: details,
        lambda: [],
        lambda text: find_text(index, text),
        lambda where: evaluate_condition(index, details, {}, where),
    )
    return [r.id.rpartition("_")[2] for r in index.records(found.numbers)]


def test_filters(tmp_path: Path) -> None:
    records = [
        record(0, "correct"),
        record(1, "incorrect", text="x" * 500),
        record(2, "unparsed", other="correct"),
        acting(3),
        record(4, "correct", text=HOSTILE),
    ]
    folder = write(tmp_path / "r", records)
    assert chosen(folder) == ["0", "1", "2", "3", "4"]
    assert chosen(folder, outcome="failed") == ["1", "2", "3"]
    assert chosen(folder, outcome="unparsed") == ["2"]
    assert chosen(folder, readers="differ") == ["2"]
    assert chosen(folder, tools="yes") == ["3"]
    assert chosen(folder, tools="no", least="400") == ["1"]
    assert chosen(folder, most="30", outcome="correct") == ["0"]
    assert chosen(folder, text="SCRIPT>ALERT(1)") == ["4"]
    assert chosen(folder, text="答案是") == ["4"]
    assert chosen(folder, text="42") == ["3"]  # in the transcript
    assert chosen(folder, text="finish") == []  # a key of the line, no word of the reply
    assert chosen(folder, tier="none") == []
    assert chosen(folder, tier="strict", text="snarks_2") == ["2"]


@pytest.mark.parametrize(
    "query", [{"outcome": "wrong"}, {"least": "many"}, {"exam": "other"}, {"sort": "id"}]
)
def test_an_address_that_asks_for_what_is_not_there_is_refused(
    tmp_path: Path, query: dict[str, str]
) -> None:
    folder = write(tmp_path / "r", mixed(2))
    with pytest.raises(UsageError):
        chosen(folder, **query)


def test_a_condition_chooses_among_the_lines_that_count(tmp_path: Path) -> None:
    records = [
        record(0, "correct"),
        record(1, "error", reply=Reply(error=Fault("server", "boom")), hash="a" * 32),
        record(2, "unparsed", other="correct", text="It is 答案, 'quoted'."),
        acting(3),
    ]
    folder = write(tmp_path / "it's here", records)
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"bench": "bbh", "id": \n')  # damaged
    add(folder, [record(1, "incorrect", hash="a" * 32, text="x" * 500), record(4, "correct")])
    with torn(folder, record(5)):
        for where, expected in {
            "outcome = 'correct'": ["0", "4"],
            "outcome <> 'correct' and length > 100": ["1"],
            "differ": ["2"],
            "tools": ["3"],
            "reply like '%答案%' or reply like '%''quoted''%'": ["2"],
            "seconds > 2 -- of a comment": ["2", "4"],
            "answer = '(B)' and score = 1 and tier = 'strict' and error is null": ["0", "4"],
            "output_tokens > 5 and attempts = 1 and exam = 'bbh' and subset = ''": list("0124"),
        }.items():
            assert sorted(chosen(folder, where=where)) == expected, where


def test_a_condition_is_put_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record(n, "correct" if n % 3 else "incorrect", text="答" * n) for n in range(40)]
    folder = write(tmp_path / "r", records)
    with (folder / "records.jsonl").open("ab") as file:
        for odd in (b"\x01", b"\r", b"\xff", b"\x00"):  # in a field that the index passes over
            line = b'{"bench":"bbh","id":"x%s","hash":"h%s","target":"%s","reply":{}}\n'
            file.write(line % (odd.hex().encode(), odd.hex().encode(), odd))
    add(folder, [record(40, "correct", text="短")])
    wanted = [str(n) for n in range(40) if n % 3 and n > 20]
    where = "outcome = 'correct' and length > 20"
    for size in (1, 3000, 1 << 22):
        monkeypatch.setattr("keju.viewer.search._BLOCK", size)
        assert sorted(chosen(folder, where=where)) == sorted(wanted), size


@pytest.mark.parametrize(
    "where",
    [
        "nothing = 1",
        "outcome = ",
        "true; select 1",
        "id in (select content from read_text('/etc/hostname'))",
        "id in (select * from read_csv('/etc/hostname'))",
        "exists (select 1 from glob('/etc/*'))",
        "length > (select avg(length) from replies)",  # a row is judged by itself alone
        "true) union all select (99999999",
        "true) union all select (null",
        "true) limit (3",
        "number < 5",
        "select 1",
        "true, false",
    ],
)
def test_a_condition_reads_nothing_else_and_is_refused_in_a_line(
    tmp_path: Path, where: str
) -> None:
    folder = write(tmp_path / "r", mixed(3))
    with pytest.raises(UsageError, match="this condition is not valid") as refused:
        chosen(folder, where=where)
    assert "\n" not in str(refused.value)


def test_a_condition_that_takes_too_long_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "r", mixed(3))
    monkeypatch.setattr("keju.viewer.condition.PATIENCE", 0.3)
    endless = "(select sum(a.range * b.range) from range(10000000) a, range(10000000) b) > 0"
    with pytest.raises(UsageError, match="was stopped"):
        chosen(folder, where=endless)


@pytest.mark.parametrize(
    "where", ["len(range(1000000000)) > 0", "length(repeat(reply || 'x', 2000000000)) > 0"]
)
def test_a_condition_that_takes_too_much_memory_is_stopped_outside_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    folder = write(tmp_path / "r", mixed(3))
    monkeypatch.setattr("keju.viewer.search.MEMORY", 1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UsageError) as refused:
        chosen(folder, where=where)
    assert "\n" not in str(refused.value)
    if "range" in where:
        assert refused.value.code == "view_where_memory"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2_000_000


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGSEGV, "view_where_died", "crashed (SIGSEGV)"),
        (signal.SIGKILL, "view_where_killed", "no memory left"),
    ],
)
def test_a_child_that_dies_is_not_said_to_need_memory_without_a_sign_of_it(
    tmp_path: Path, number: signal.Signals, code: str, words: str
) -> None:
    task = ConditionQuery("true", str(tmp_path / "lines"), "SELECT {where}", "{}", 1 << 30)
    with start_evaluation(task, lambda: False) as running:
        running._process.send_signal(number)
        with pytest.raises(UsageError) as refused:
            running.evaluate_block(1)
    assert refused.value.code == code
    assert words in str(refused.value)


def test_a_condition_is_stopped_when_the_browser_has_left(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", mixed(3))
    index = ReplyIndex(folder)
    index.refresh()
    details = ReplyDetails({})
    details.refresh(index)
    endless = "(select sum(a.range * b.range) from range(10000000) a, range(10000000) b) > 0"
    looks = iter([False] * 20)
    with pytest.raises(PageStopped):
        evaluate_condition(index, details, {}, endless, lambda: next(looks, True))


def test_keys_are_numbered_as_a_dictionary_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keju.viewer.index.FEW_KEYS", 50)
    draw = random.Random(3)
    keys, known = QuestionKeys(), dict[int, int]()
    for _ in range(60):
        batch = [draw.choice((hash(("k", draw.randrange(3000))), -1)) for _ in range(9)]
        if draw.random() < 0.5:
            batch = [hash(("new", draw.random())) for _ in range(9)]
        fresh = len({*batch} - known.keys()) == len(batch)
        assert keys.add_all_new(batch) == fresh
        for key in batch:
            assert keys.add(key) == known.setdefault(key, len(known))
    assert len(keys) == len(known) > 100
    assert all(keys.find(key) == number for key, number in known.items())
    assert keys.find(hash("nowhere")) == -1
    one_by_one = QuestionKeys()
    assert [one_by_one.add(key) for key in known] == list(range(len(known)))
    assert all(one_by_one.find(key) == number for key, number in known.items())


@pytest.mark.parametrize(
    "starts", [[], [0, 10, 20, 30], [0, 90, 20, 30, 80, 50], [5, 4, 3], [70, 10, 20, 60]]
)
def test_lines_are_found_where_replies_took_the_place_of_others(starts: list[int]) -> None:
    lines = LineNumbers(array("q", starts))
    for place in range(100):
        assert lines.find(place) == (starts.index(place) if place in starts else -1)


@pytest.mark.parametrize("sort", ["exam", "slowest", "longest", "tokens"])
def test_pieces_of_an_order_make_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sort: Sort
) -> None:
    index, details = ReplyIndex(write(tmp_path / "r", mixed(60))), ReplyDetails({})
    index.refresh()
    details.refresh(index)
    chosen = ReplySelection(sort=sort)
    whole = list(sort_replies(chosen, index, range(len(index)), details))
    monkeypatch.setattr("keju.viewer.filters.PIECE", 7)
    assert list(sort_replies(chosen, index, range(len(index)), details)) == whole
    if sort == "slowest":
        assert whole == sorted(range(60), key=lambda n: -details.seconds[n])
    if sort == "longest":
        assert whole == sorted(range(60), key=lambda n: -details.length[n])


class CountingParts(list[int]):
    """The exams of replies; it counts how often one is read."""

    reads = 0

    def __getitem__(self, number: Any) -> Any:
        self.reads += 1
        return super().__getitem__(number)


def test_the_order_of_many_exams_takes_time_linear_in_replies() -> None:
    """A journal of strangers may have one reply in each of 70,000 exams."""
    count = 2_000
    parts = CountingParts(number * 7 % count for number in range(count))
    index, details = SimpleNamespace(part=parts), SimpleNamespace(position=[0] * count)
    ordered = sort_replies(ReplySelection(), index, range(count), details)  # type: ignore[arg-type]
    assert [number * 7 % count for number in ordered] == list(range(count))
    assert parts.reads <= 3 * count


def test_many_exams_and_many_scores_have_places(tmp_path: Path) -> None:
    """Means of continuous scores may all differ."""
    folder = write(tmp_path / "r", [])
    readings = '[{"reader":"r","answer":{"value":"x"},"score":{"value":%r,"outcome":"correct"}}]'
    line = '{"bench":"e%d","id":"%d","hash":"%032x","target":"A","reply":{},"readings":%s}\n'
    with (folder / "records.jsonl").open("a") as file:
        for n in range(70_000):
            file.write(line % (n % 300, n, n, readings % (n / 70_000)))
    index = ReplyIndex(folder)
    index.refresh()
    assert (len(index), len(index.parts), len(index.kinds)) == (70_000, 300, 70_000)
    assert index.kinds[index.kind[69_999]].score == 69_999 / 70_000
