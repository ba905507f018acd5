from __future__ import annotations

import io

import pytest
from rich.cells import cell_len

from keju.reporting.table import TableColumn, render_table


def render(
    columns: list[TableColumn | str], rows: list[list[object]], width: int | None = None
) -> str:
    stream = io.StringIO()
    render_table(columns, rows, stream, width=width)  # type: ignore[arg-type]
    return stream.getvalue()


def test_chinese_names_keep_the_columns_aligned() -> None:
    lines = render(["subset", "n"], [["高等数学", 5], ["snarks", 178]]).splitlines()
    assert len({cell_len(line) for line in lines}) == 1
    assert lines[2].endswith("  5")
    assert lines[3].endswith("178")


def test_unknown_prints_as_a_dash_and_never_as_zero() -> None:
    line = render(["subset", "n"], [["a", None], ["b", 3]]).splitlines()[2]
    assert line.split() == ["a", "–"]


def test_a_column_without_any_value_is_left_out() -> None:
    text = render(["subset", "chance", "n"], [["a", None, 1], ["b", "", 2]])
    assert "chance" not in text
    assert "n" in text.splitlines()[0]


def test_zero_is_a_value() -> None:
    assert "errors" in render(["subset", "errors"], [["a", 0]])


@pytest.mark.parametrize("width", [40, 60, 200])
def test_no_line_is_wider_than_the_screen_and_no_cell_is_lost(width: int) -> None:
    names = [f"column_{number}" for number in range(8)]
    rows: list[list[object]] = [
        [f"logical_deduction_{n}_objects", *(n * 1000 + c for c in range(8))] for n in (3, 5)
    ]
    text = render(["subset", *names], rows, width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    for cell in [*names, *(f"{n * 1000 + c:,}" for n in (3, 5) for c in range(8))]:
        assert cell in text


def subsets(width: int | None) -> list[str]:
    columns: list[TableColumn | str] = [
        "subset",
        TableColumn("accuracy", "right"),
        TableColumn("95 % interval", "right"),
        TableColumn("human average", "right", spare=2),
        TableColumn("human maximum", "right", spare=2),
        TableColumn("unparsed", "right", spare=1),
    ]
    name = "logical_deduction_five_objects"
    return render(columns, [[name, "50.00 %", "29.93–70.07", "1 %", "2 %", 3]], width).splitlines()


@pytest.mark.parametrize(
    ("width", "missing"),
    [
        (None, ()),
        (100, ()),
        (90, ()),
        (80, ("human average", "human maximum")),
        (60, ("human average", "human maximum", "unparsed")),
    ],
)
def test_a_narrow_screen_spares_columns_before_it_breaks_names(
    width: int | None, missing: tuple[str, ...]
) -> None:
    lines = subsets(width)
    row = next(line for line in lines if "50.00 %" in line)
    assert row.startswith("logical_deduction_five_objects ")
    assert "29.93–70.07" in row
    assert ("unparsed" in missing) == (not row.endswith("3"))
    note = f"(no room here for: {', '.join(missing)})"
    assert (note in lines) == bool(missing)


def test_titles_are_broken_between_words_before_a_column_goes() -> None:
    wide, narrow = subsets(100), subsets(86)
    assert "human average   human maximum" in wide[0]
    assert [line.split() for line in narrow[:2]] == [
        ["95", "%", "human", "human"],
        ["subset", "accuracy", "interval", "average", "maximum", "unparsed"],
    ]


def test_a_pipe_gets_one_line_a_row_however_long() -> None:
    long = "word " * 60
    assert len(render(["a", "b"], [["x" * 150, long]]).splitlines()) == 3


def test_what_could_drive_a_terminal_is_defused() -> None:
    text = render(["name"], [["\x1b[31mred\x1b[0m [bold]x[/bold]"]])
    assert "\x1b" not in text
    assert "[bold]x[/bold]" in text


def test_a_stream_that_cannot_hold_the_characters_gets_replacements() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render_table(["name"], [["高等数学"]], stream)
    stream.seek(0)
    assert "????" in stream.read()


def test_what_does_not_fit_becomes_a_record_for_each_row() -> None:
    columns: list[TableColumn | str] = [
        TableColumn("run", id=True),
        "model",
        "n",
        TableColumn("about", fold=True),
    ]
    name = "20261117-160000-logical-deduction-of-five-objects"
    rows: list[list[object]] = [
        [name, "small", 1200, "what it is for, at some length, in words"],
        ["b", "large", None, ""],
    ]
    assert render(columns, rows, 50).splitlines() == [
        name,
        "  model: small · n: 1,200",
        "  about: what it is for, at some length, in words",
        "b",
        "  model: large",
    ]


def test_ids_and_paths_are_never_broken() -> None:
    path = "/a/path/that/is/longer/than/the/screen/of/sixty/columns/is/wide"
    columns: list[TableColumn | str] = [TableColumn("id", id=True), TableColumn("path", fold=True)]
    for width in (40, 60, 100):
        words = render(columns, [["demo_word_sorting_12", path]], width).split()
        assert {"demo_word_sorting_12", path} <= set(words)


def test_a_text_that_folds_is_broken_between_words_and_wide_characters() -> None:
    columns: list[TableColumn | str] = ["name", TableColumn("about", fold=True)]
    text = "只有 keju_data_pull 与需要它的HF_ENDPOINT会用到，其他的都不需要"
    lines = render(columns, [["a", text]], 40).splitlines()
    assert len(lines) > 3
    assert all(cell_len(line) <= 40 for line in lines)
    assert "keju_data_pull" in "\n".join(lines)
    assert "HF_ENDPOINT" in "\n".join(lines)
    assert "".join(line[3:] for line in lines[2:]).replace(" ", "").endswith(text.replace(" ", ""))


def test_a_record_leaves_out_what_is_not_known_and_titles_that_are_none() -> None:
    columns: list[TableColumn | str] = ["", "", TableColumn("interval", fold=True)]
    long = "between one and another, as far as that can be said"
    rows: list[list[object]] = [["Tokens of all requests", "4.5M", long], ["Cost", None, None]]
    assert render(columns, rows, 30).splitlines() == [
        "Tokens of all requests",
        "  4.5M",
        "  interval: between one and",
        "    another, as far as that",
        "    can be said",
        "Cost",
        "  –",
    ]
