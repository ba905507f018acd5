"""Read the questions of an XLSX file, with openpyxl of the extra ``data``.

Values count as they are shown where that is clear: whole numbers without ``.0``, percentages with
``%``. Dates, errors, formulas without a stored result and merged cells raise DataError with one
line that says what to change.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from keju import bounds
from keju.errors import DataError, MissingExtra, did_you_mean
from keju.sources.sheets import (
    CountColumns,
    Row,
    SheetFile,
    SheetForm,
    name_values,
    refuse_repeated,
)

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

MOST_UNPACKED = 64 * bounds.MIB
"""The most bytes of an unpacked workbook, because openpyxl needs many times as much memory."""
HEADER_ROWS = 20
"""The rows at the top of a sheet in which the header may be."""


def open_workbook(
    stream: io.BufferedIOBase, where: str, count_known: CountColumns, sheet: str
) -> SheetFile:
    """Return the form and the rows of the only sheet with questions, or of the one named."""
    content = bounds.read_whole(stream, where)
    _refuse_large(content, where)
    workbook, formulas = _load(content, where, values=True), _load(content, where, values=False)
    name = _choose_sheet(workbook, where, count_known, sheet)
    worksheet: Worksheet = workbook[name]
    records = [list(record) for record in worksheet.iter_rows()]
    header_row = _find_header(records, where, count_known)
    columns = [str(cell.value or "").strip() for cell in records[header_row]]
    refuse_repeated(columns, where)
    _refuse_merged(worksheet, header_row + 1, columns, where)
    formula_cells = _find_formulas(formulas[name], header_row + 1)
    for cell in formula_cells:
        if worksheet[cell].value is None:
            raise DataError("sheet_formula", where=where, cell=cell)
    form = SheetForm(tuple(columns), sheet=name, formulas=len(formula_cells))
    return SheetFile(form, _rows(columns, records[header_row + 1 :], where))


def _refuse_large(content: bytes, where: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        raise DataError("sheet_not_xlsx", where=where) from None
    if size > MOST_UNPACKED:
        raise DataError("sheet_too_large", where=where, most=MOST_UNPACKED // bounds.MIB)


def _load(content: bytes, where: str, *, values: bool) -> Workbook:
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra(f"reading {where}", "data") from None
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parts that openpyxl does not know, such as styles
            return openpyxl.load_workbook(io.BytesIO(content), data_only=values)
    except Exception:  # openpyxl raises errors of many kinds for damaged files
        raise DataError("sheet_not_xlsx", where=where) from None


def _choose_sheet(workbook: Workbook, where: str, count_known: CountColumns, sheet: str) -> str:
    """Return the name of the sheet to read; DataError if several have questions."""
    if sheet:
        if sheet not in workbook.sheetnames:
            hint = did_you_mean(sheet, workbook.sheetnames)
            raise DataError("sheet_unknown", where=where, name=sheet, hint=hint)
        return sheet
    names = []
    for worksheet in workbook.worksheets:
        top = worksheet.iter_rows(max_row=HEADER_ROWS, values_only=True)
        if any(count_known([str(value or "") for value in record]) >= 1 for record in top):
            names.append(worksheet.title)
    if len(names) > 1:
        raise DataError("sheet_several", where=where, names=names, first=names[0])
    return names[0] if names else str(workbook.worksheets[0].title)


def _find_header(records: Sequence[Sequence[Any]], where: str, count_known: CountColumns) -> int:
    """Return the index of the first row that is not empty; DataError if another is the header."""
    filled = [i for i, record in enumerate(records) if any(c.value is not None for c in record)]
    if not filled:
        raise DataError("custom.no_rows", path=where)
    top_row = filled[0]
    if not count_known([str(cell.value or "") for cell in records[top_row]]):
        for i in filled[1:HEADER_ROWS]:
            if count_known([str(cell.value or "") for cell in records[i]]) > 1:
                raise DataError("sheet_title_rows", where=where, row=i + 1, above=i)
    return top_row


def _refuse_merged(
    worksheet: Worksheet, header_row: int, columns: Sequence[str], where: str
) -> None:
    """Raise DataError if cells of the table are merged."""
    for merged in worksheet.merged_cells.ranges:
        if merged.max_row >= header_row and merged.min_col <= len(columns):
            raise DataError("sheet_merged", where=where, cells=str(merged))


def _find_formulas(worksheet: Worksheet, header_row: int) -> list[str]:
    """Return the names of the cells below the header that hold a formula, such as ``B2``."""
    return [
        cell.coordinate
        for record in worksheet.iter_rows(min_row=header_row + 1)
        for cell in record
        if cell.data_type == "f"
    ]


def _rows(columns: Sequence[str], records: Sequence[Sequence[Any]], where: str) -> Iterator[Row]:
    for number, record in enumerate(records, 1):
        values = [_shown_text(cell, where) for cell in record]
        if any(value.strip() for value in values):
            yield name_values(columns, values, number, where)


def _shown_text(cell: Any, where: str) -> str:
    """Return the text of a cell as the program shows it."""
    value = cell.value
    if value is None:
        return ""
    if cell.data_type == "e":
        raise DataError("sheet_error_cell", where=where, cell=cell.coordinate, value=value)
    if isinstance(value, date | datetime | time):
        raise DataError("sheet_date", where=where, cell=cell.coordinate, value=value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        is_share = "%" in (cell.number_format or "")
        number = round(100 * value, 10) if is_share else value
        text = str(int(number)) if float(number).is_integer() else repr(number)
        return f"{text}%" if is_share else text
    return str(value)
