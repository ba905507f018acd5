"""The labelled corpus: what was committed is what was drawn, and every key finds its reply."""

from __future__ import annotations

import hashlib
from collections import Counter

import msgspec
import pytest
from perf.exam import data_dir
from perf.reading.draw import STRATA, WANTED, shares_of, stratum_of
from perf.reading.replies import CORPUS, RECORDINGS, ReplyFile, recorded, replies_of

SUMS = CORPUS / "SHA256SUMS"


def rows(model: str) -> list[dict[str, str]]:
    return [
        msgspec.json.decode(line) for line in (CORPUS / f"{model}.jsonl").read_bytes().splitlines()
    ]


def strata() -> dict[str, dict[str, int]]:
    sizes: dict[str, dict[str, int]] = msgspec.json.decode((CORPUS / "strata.json").read_bytes())
    return sizes


def test_files_are_as_committed() -> None:
    for line in SUMS.read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((CORPUS / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.model)
def test_strata_are_drawn_as_planned(recording: ReplyFile) -> None:
    drawn = Counter(row["stratum"] for row in rows(recording.model))
    sizes = strata()[recording.model]
    planned = {name: n for name, n in shares_of(sizes, WANTED).items() if n}
    assert drawn == planned
    assert drawn.total() == min(WANTED, sum(sizes.values()))
    assert set(drawn) <= set(STRATA)
    assert len({row["key"] for row in rows(recording.model)}) == drawn.total()


@pytest.mark.slow
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.model)
def test_every_key_finds_its_reply(recording: ReplyFile) -> None:
    folder = data_dir()
    if folder is None or not (folder / recording.file).is_file():
        pytest.skip(f"needs {recording.file}")
    replies = replies_of(recording.model, folder)
    assert len(replies) == sum(strata()[recording.model].values())
    assert not [row for row in rows(recording.model) if row["key"] not in replies]


def test_hard_replies_are_told_from_plain_ones() -> None:
    folder = data_dir()
    recording = RECORDINGS[1]
    if folder is None or not (folder / recording.file).is_file():
        pytest.skip(f"needs {recording.file}")
    plain = next(recorded(recording, folder))

    def say(text: str) -> str:
        return stratum_of(plain._replace(text=text))

    assert say("It is so. The answer is (B).") == "agree"
    assert say("The answer is (B). The answer is (C).") == "two"
    assert say("No idea.") == "silent"
    assert say("The answer is (B).\n\nQuestion: And then?") == "run-on"
