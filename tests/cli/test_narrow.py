"""What commands print on a narrow terminal: what belongs together stays so, ids stay whole."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keju.messages.wrapping import cells
from tests.cli.conftest import Keju

SUBSET = "tracking_shuffled_objects_seven_objects"
Screen = Callable[..., list[str]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> Screen:
    """The lines that a command prints on a terminal of so many columns, without their colours."""

    def run(width: int, *argv: str, code: int = 0) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            patch.setattr("sys.stdout", out := Terminal())
            patch.setattr("sys.stderr", Terminal())
            assert keju(*argv).code == code
        plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
        return [line.rstrip() for line in plain.splitlines()]

    return run


def records(lines: list[str]) -> dict[str, str]:
    """What stands indented below each line that is not."""
    texts_by_name: dict[str, str] = {}
    name = ""
    for line in lines:
        if line.startswith(" "):
            texts_by_name[name] = f"{texts_by_name[name]} {line.strip()}".strip()
        else:
            name = line
            texts_by_name.setdefault(name, "")
    return texts_by_name


def predictions(path: str, data_dir: Path, right: Callable[[int], bool]) -> None:
    """Answers to one subset; the wrong ones are long."""
    rows = json.loads((data_dir / "bbh" / "bbh" / f"{SUBSET}.json").read_text("utf-8"))["examples"]
    lines = (
        {
            "subset": SUBSET,
            "index": number,
            "output": f"So the answer is {row['target'] if right(number) else 'none of them all'}.",
        }
        for number, row in enumerate(rows)
    )
    Path(path).write_text("\n".join(map(json.dumps, lines)) + "\n")


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_compare_keeps_both_answers_with_their_question(
    screen: Screen, data_dir: Path, keju: Keju, width: int, language: str
) -> None:
    predictions("a.jsonl", data_dir, lambda number: number % 2 == 0)
    predictions("b.jsonl", data_dir, lambda number: number % 3 == 0)
    words = ("compare", "a.jsonl", "b.jsonl", "--datasets", "bbh", "--data-dir", str(data_dir))
    lines = screen(width, *words, "--verbose", "--language", language)
    assert all(cells(line) <= width for line in lines)
    flips = keju(*words, "--json").json["comparisons"][0]["flips"]
    flip_texts = records(lines)
    visible_flips = [flip for flip in flips if flip["id"] in flip_texts]
    assert len(visible_flips) >= 2
    for flip in visible_flips:
        for answer in (flip["target"], flip["base_answer"], flip["arm_answer"]):
            assert answer in flip_texts[flip["id"]]


@pytest.mark.parametrize("width", [60, 80])
def test_a_run_is_listed_in_one_piece_with_its_time_as_a_clock_shows_it(
    screen: Screen, keju: Keju, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    names = ["20261117-160000-a-run-with-a-long-name", "20261117-170000-another-run"]
    for name in names:
        demo = ("-m", "scripted", "--datasets", "demo", "--limit", "1", "--run-id", name)
        assert keju("eval", *demo, "-q", "--no-report").code == 0
        path = Path("runs", name, "manifest.json")
        manifest = json.loads(path.read_text())
        manifest["created"] = "2026-11-17T16:00:00.123+00:00"
        path.write_text(json.dumps(manifest))
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        lines = screen(width, "list", "runs")
        piped = keju("list", "runs").out
    finally:
        monkeypatch.undo()
        time.tzset()
    assert all(cells(line) <= width for line in lines)
    run_texts = records(lines)
    for name in names:
        assert "2026-11-18 00:00" in run_texts[name]
        assert "scripted" in run_texts[name]
        assert f"runs/{name}" in run_texts[name]
    assert "T16:00" not in piped
    assert piped.count("2026-11-18 00:00") == 2


def test_json_keeps_the_time_of_a_run_as_its_manifest_has_it(keju: Keju) -> None:
    keju("eval", "-m", "scripted", "--datasets", "demo", "--run-id", "r", "-q", "--no-report")
    created = json.loads(Path("runs/r/manifest.json").read_text())["created"]
    assert keju("list", "runs", "--json").json["runs"][0]["created"] == created


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("list_kind", ["benchmarks", "models", "protocols", "subsets", "readers"])
def test_a_list_says_everything_of_a_row_in_one_place(
    screen: Screen, keju: Keju, list_kind: str, language: str
) -> None:
    rows = keju("list", list_kind, "--json").json[list_kind]
    lines = screen(60, "list", list_kind, "--language", language)
    assert all(cells(line) <= 60 for line in lines)
    titles = [line for line in lines if line and set(line) <= {"-"}]
    assert len(titles) <= 1, "one table, or a record for each row"
    if not titles:
        assert len(lines) >= 2 * len(rows)
        heads = [line for line in lines if line and not line.startswith(" ")]
        assert len(heads) == len(rows)


@pytest.fixture
def unwell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a long data folder, on a machine without hubs and with a bubblewrap that fails.

    Sandboxes that a killed run left on the machine of the test are not listed.
    """
    monkeypatch.setattr("keju.solvers.sandbox.orphan_cleanup.find_leftovers", lambda: iter(()))
    for hub in ("HF_ENDPOINT", "MODELSCOPE_ENDPOINT"):
        monkeypatch.setenv(hub, "http://127.0.0.1:9")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    bwrap = tools / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    data = tmp_path / "-".join(["data"] * 20)
    (data / "bbh").mkdir(parents=True)
    return data


COMMANDS = (
    "keju data pull ceval",
    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    "sudo sysctl kernel.unprivileged_userns_clone=1",
)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80])
def test_the_doctor_prints_a_short_list_with_commands_to_copy(
    screen: Screen, unwell: Path, width: int, language: str
) -> None:
    words = ("doctor", "--data-dir", str(unwell), "--language", language)
    lines = screen(width, *words)
    stripped = [line.strip() for line in lines]
    for command in COMMANDS:
        assert command in stripped, "whole, and alone on its line"
    assert str(unwell) in " ".join(lines), "a path is not broken"
    long = [line for line in stripped if cells(line) > width]
    assert all(line in COMMANDS or str(unwell) in line for line in long)
    state = "ok|missing" if language == "en" else "正常|缺少"
    heads = [line for line in lines if not line.startswith(" ")]
    assert all(re.match(rf"({state}) +\S", line) for line in heads)
    starts = {cells(line) - cells(re.sub(r"^\S+ +", "", line)) for line in heads}
    assert len(starts) == 1, "names stand below each other"


def test_a_pipe_gets_each_check_and_each_command_on_a_line_of_its_own(
    keju: Keju, unwell: Path
) -> None:
    lines = keju("doctor", "--data-dir", str(unwell)).out.splitlines()
    state = next(line for line in lines if re.match("missing +sandbox bwrap ", line))
    assert state.endswith("bwrap: setting up uid map: Permission denied")
    assert {*COMMANDS} <= {line.strip() for line in lines}
    assert all(len(line) < 240 for line in lines)


def test_the_doctor_tells_programs_of_every_check(keju: Keju, unwell: Path) -> None:
    checks = keju("doctor", "--data-dir", str(unwell), "--json").json["checks"]
    checks_by_name = {check["name"]: check for check in checks}
    assert checks_by_name["jinja2"]["status"] == checks_by_name["data bbh"]["status"] == "ok"
    assert checks_by_name["data ceval"]["remedy"] == "keju data pull ceval"
    assert all(command in checks_by_name["sandbox bwrap"]["remedy"] for command in COMMANDS[1:])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sentences_are_broken_between_words(screen: Screen, language: str) -> None:
    words = ("eval", "--model", "scripted", "--datasets", "demo", "--language", language)
    lines = screen(60, *words, "--dry-run")[-4:]
    assert max(map(cells, lines)) <= 60, lines
    assert "scripted" in " ".join(lines)


def test_what_is_said_on_stderr_is_broken_between_words(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "a/" + "folder" * 12
    keju("eval", "--model", "scripted", "--datasets", "demo", "--run-id", "one", "-q")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    assert keju("export", "one", "-o", f"{long}/one.csv").code == 0
    lines = terminal.getvalue().splitlines()
    assert f"{long}/one.csv" in lines
    assert max(len(line) for line in lines if long not in line) <= 40
