"""Facts about BBH: subsets, tasks, baselines, faulty rows, files, recorded outputs.

Origin: Suzgun et al. 2022, "Challenging BIG-Bench Tasks and Whether Chain-of-Thought Can Solve
Them" (arXiv 2210.09261), and the files of suzgunmirac/BIG-Bench-Hard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keju.benchmarks.base import Mean, Reference, ToolTask
from keju.benchmarks.kit import Erratum, make_fault_finder
from keju.benchmarks.metadata import (
    Golden,
    GoldenCheck,
    GradedRecording,
    RecordedFigure,
    RecordedScores,
    RecordingSetup,
)
from keju.errors import DataError, did_you_mean
from keju.sources.folder import CompanionFiles, HubRepo, Layout

Kind = Literal["choice", "bool", "yes_no", "valid", "integer", "brackets", "words"]
"""The form of a subset's answers; each kind has its own normal form."""

Field = Literal["NLP", "algorithmic"]


class SubsetMetadata(NamedTuple):
    """The published facts about one subset."""

    rows: int
    kind: Kind
    field: Field
    task: str
    """Name of the task in the paper, which averages some subsets into one."""


def _make_subset(
    name: str, kind: Kind, field: Field, rows: int = 250, task: str = ""
) -> tuple[str, SubsetMetadata]:
    return name, SubsetMetadata(rows, kind, field, task or name)


SUBSETS: dict[str, SubsetMetadata] = dict((
    _make_subset("temporal_sequences", "choice", "algorithmic"),
    _make_subset("disambiguation_qa", "choice", "NLP"),
    _make_subset("date_understanding", "choice", "NLP"),
    _make_subset("tracking_shuffled_objects_three_objects", "choice", "algorithmic",
                 task="tracking_shuffled_objects"),
    _make_subset("penguins_in_a_table", "choice", "NLP", rows=146),
    _make_subset("geometric_shapes", "choice", "algorithmic"),
    _make_subset("snarks", "choice", "NLP", rows=178),
    _make_subset("ruin_names", "choice", "NLP"),
    _make_subset("tracking_shuffled_objects_seven_objects", "choice", "algorithmic",
                 task="tracking_shuffled_objects"),
    _make_subset("tracking_shuffled_objects_five_objects", "choice", "algorithmic",
                 task="tracking_shuffled_objects"),
    _make_subset("logical_deduction_three_objects", "choice", "algorithmic",
                 task="logical_deduction"),
    _make_subset("hyperbaton", "choice", "NLP"),
    _make_subset("logical_deduction_five_objects", "choice", "algorithmic",
                 task="logical_deduction"),
    _make_subset("logical_deduction_seven_objects", "choice", "algorithmic",
                 task="logical_deduction"),
    _make_subset("movie_recommendation", "choice", "NLP"),
    _make_subset("salient_translation_error_detection", "choice", "NLP"),
    _make_subset("reasoning_about_colored_objects", "choice", "NLP"),
    _make_subset("multistep_arithmetic_two", "integer", "algorithmic"),
    _make_subset("navigate", "yes_no", "algorithmic"),
    _make_subset("dyck_languages", "brackets", "algorithmic"),
    _make_subset("word_sorting", "words", "algorithmic"),
    _make_subset("sports_understanding", "yes_no", "NLP"),
    _make_subset("boolean_expressions", "bool", "algorithmic"),
    _make_subset("object_counting", "integer", "algorithmic"),
    _make_subset("formal_fallacies", "valid", "NLP"),
    _make_subset("causal_judgement", "yes_no", "NLP", rows=187),
    _make_subset("web_of_lies", "yes_no", "algorithmic"),
))  # fmt: skip
"""The 27 subsets, in EvalScope's order."""

ABOUT: dict[str, str] = {
    "temporal_sequences": "when a person was free, given where others saw them during the day",
    "disambiguation_qa": "whom a pronoun means, or that the sentence leaves it open",
    "date_understanding": "a date, given hints about today, yesterday and the like",
    "tracking_shuffled_objects_three_objects": "who holds what after swaps among three people",
    "penguins_in_a_table": "a question about a small table of animals, which may change",
    "geometric_shapes": "which shape an SVG path draws",
    "snarks": "which of two nearly equal sentences is sarcastic",
    "ruin_names": "the humorous one-letter edit of the name of an artist or film",
    "tracking_shuffled_objects_seven_objects": "who holds what after swaps among seven people",
    "tracking_shuffled_objects_five_objects": "who holds what after swaps among five people",
    "logical_deduction_three_objects": "the order of three things, given clues about their places",
    "hyperbaton": "which sentence has its adjectives in the usual English order",
    "logical_deduction_five_objects": "the order of five things, given clues about their places",
    "logical_deduction_seven_objects": "the order of seven things, given clues about their places",
    "movie_recommendation": "a film that people who like four others would like",
    "salient_translation_error_detection": "what kind of error a translation from German has",
    "reasoning_about_colored_objects": "a count, colour or place among coloured things",
    "multistep_arithmetic_two": "the value of an expression with brackets and four operations",
    "navigate": "whether some steps lead back to where they began",
    "dyck_languages": "the brackets that close an open sequence",
    "word_sorting": "a list of words in alphabetical order",
    "sports_understanding": "whether a sentence about sport is plausible",
    "boolean_expressions": "the value of an expression of True, False, and, or, not",
    "object_counting": "how many things of a kind a list holds",
    "formal_fallacies": "whether an argument follows from its premises alone",
    "causal_judgement": "whether a typical person would call something the cause",
    "web_of_lies": "whether the last of some people tells the truth",
}
"""The content of each subset's questions."""

CHOICE_SUBSETS = frozenset(name for name, facts in SUBSETS.items() if facts.kind == "choice")
TWO_VALUED: frozenset[Kind] = frozenset({"bool", "yes_no", "valid"})
"""Kinds with two possible answers, so that a random guess is right half of the time."""


def _group_tasks(field: Field | None = None) -> tuple[tuple[str, ...], ...]:
    tasks: dict[str, list[str]] = {}
    for name, facts in SUBSETS.items():
        if field is None or facts.field == field:
            tasks.setdefault(facts.task, []).append(name)
    return tuple(tuple(subsets) for subsets in tasks.values())


MEANS = (
    Mean("macro_accuracy", "mean of 27 subsets", tuple((name,) for name in SUBSETS)),
    Mean("macro_23", "mean of 23 tasks", _group_tasks()),
    Mean("nlp_12", "NLP, mean of 12 tasks", _group_tasks("NLP"), group=True),
    Mean(
        "algorithmic_11", "algorithmic, mean of 11 tasks", _group_tasks("algorithmic"), group=True
    ),
)

BASELINES: dict[str, tuple[float, float, float]] = {
    "boolean_expressions": (50.0, 79.4, 100.0),
    "causal_judgement": (50.0, 69.6, 100.0),
    "date_understanding": (17.2, 76.8, 100.0),
    "disambiguation_qa": (33.2, 66.6, 93.3),
    "dyck_languages": (1.2, 47.8, 100.0),
    "formal_fallacies": (25.0, 90.8, 100.0),
    "geometric_shapes": (11.6, 54.0, 100.0),
    "hyperbaton": (50.0, 74.7, 100.0),
    "movie_recommendation": (25.0, 60.7, 90.0),
    "multistep_arithmetic_two": (0.0, 9.7, 25.0),
    "navigate": (50.0, 81.9, 100.0),
    "object_counting": (0.0, 86.1, 100.0),
    "penguins_in_a_table": (0.0, 78.0, 100.0),
    "reasoning_about_colored_objects": (11.9, 75.4, 100.0),
    "ruin_names": (25.0, 77.7, 100.0),
    "salient_translation_error_detection": (16.7, 36.7, 80.0),
    "snarks": (50.0, 76.7, 100.0),
    "sports_understanding": (50.0, 70.8, 100.0),
    "temporal_sequences": (25.0, 90.8, 100.0),
    "web_of_lies": (50.0, 81.3, 100.0),
    "word_sorting": (0.0, 62.6, 100.0),
}
"""Random guessing, average and best human rater, in percent, as printed in the paper's main table.

For three subsets with two tasks each, the table has one row (logical_deduction: 22.5, 40.3, 88.9;
tracking_shuffled_objects: 22.5, 64.7, 100.0), which gives no figures for single subsets.
"""

BASELINE_MEANS: dict[str, tuple[float, float, float]] = {
    "macro_23": (25.7, 67.7, 94.4),
    "nlp_12": (29.5, 71.2, 96.9),
    "algorithmic_11": (21.2, 63.5, 92.2),
}
"""The printed averages of the table; some are not the mean of the printed rows."""


def _make_reference(name: str, column: int) -> Reference:
    return Reference(
        name,
        overall={metric: row[column] / 100 for metric, row in BASELINE_MEANS.items()},
        subsets={subset: row[column] / 100 for subset, row in BASELINES.items()},
    )


REFERENCES = (
    _make_reference("human average", 1),
    _make_reference("human maximum", 2),
    _make_reference("random guessing", 0),
)

ERRATA_VERSION = 2
"""Increase it when `ERRATA` changes; the manifest stores it with the data."""

_SPLIT_OPTIONS = (
    "a comma in the title split the options; the target is text and no letter can be right"
)
_OPPOSITE_TARGET = "same question as row {} with the opposite target"
_SAME_QUESTION = "same question as row {}"
_ANNIVERSARY = "the fifth anniversary of a wedding in 1958 is in 1963; the target takes 1961"
_THANKSGIVING = "Thanksgiving of 2001 was on 11/22/2001; the target takes 11/22/2002"
_HOURS = "36 hours before 2015 it is 12/30/2014; the target takes 12/29/2014"
_WEEK = "a week after 01/31/2012 is 02/07/2012; the target is 02/06/2012"


_CIRCLES = {
    12: "ac7d5394db45", 13: "03061df4c538", 33: "f342d79cb455", 45: "6534c8e967ce",
    46: "87422d254cc3", 59: "55ad76bc7cbb", 65: "e120cd0b06a3", 71: "b59357ec9b44",
    95: "25632c2e3fdf", 104: "f6a442f8a7b5", 109: "63a5e1d5ad47", 110: "b7e623f4b999",
    118: "667c5a918923", 124: "16639faa50d1", 128: "aadf14d5b26d", 142: "28391301c3d5",
    145: "34c55dd39826", 161: "adad5a066653", 164: "20ff9fea03e6", 181: "f516be5d2fce",
    200: "a1678ca08b57", 203: "ae1680e8d9e3", 220: "ddb871b38eae", 221: "c39c02d78584",
    242: "694e3fbd3930",
}  # fmt: skip
_RECTANGLES = {
    2: "f1dd3fec6787", 4: "844ebd4ef269", 8: "99de5d042082", 14: "816e66400533",
    18: "9bfe2321cd7e", 29: "4d4d8cb78463", 66: "9b6f4602be72", 72: "cddf0e8e3f83",
    80: "1b955f86ea6f", 87: "74195f3c1391", 93: "a09c682dcab7", 98: "70527fa23f14",
    111: "d9ce9677f5c8", 120: "dd481028c4ea", 134: "e1b20a710d80", 163: "8c1c8e86c0a2",
    182: "28ac1cabcca2", 194: "51eec82021de", 199: "b50d642852ad", 211: "64c909d9624a",
    223: "7c16c21161a1", 224: "c8da74bb0048", 226: "0e930d57bdf4", 238: "6d0bdd7e6f3d",
    247: "0e3644719ce4",
}  # fmt: skip
"""Rows of geometric_shapes in which two of the options are true of the figure."""


def _make_errata(rows: Mapping[int, str], figure: str, target: str) -> dict[str, Erratum]:
    fault = f"the figure is a {figure}, which is offered too; the target is {target}"
    return {f"bbh_geometric_shapes_{index}": Erratum(row, fault) for index, row in rows.items()}


ERRATA: dict[str, Erratum] = {
    "bbh_date_understanding_2": Erratum("a2cc3987e2fd", _ANNIVERSARY),
    "bbh_date_understanding_23": Erratum("c464fa79e526", _HOURS),
    "bbh_date_understanding_72": Erratum("84f5b4ea3419", _THANKSGIVING),
    "bbh_date_understanding_73": Erratum("78399fe70f38", _WEEK),
    "bbh_date_understanding_80": Erratum("420610a48c88", _THANKSGIVING),
    "bbh_date_understanding_102": Erratum("7fbed251dd22", _THANKSGIVING),
    "bbh_date_understanding_117": Erratum("e68ab0338a6b", _THANKSGIVING),
    "bbh_date_understanding_122": Erratum("fe4842a3db72", _ANNIVERSARY),
    "bbh_date_understanding_138": Erratum("9be8aa42aa65", _HOURS),
    "bbh_date_understanding_145": Erratum("39fdbcd920b8", _ANNIVERSARY),
    "bbh_date_understanding_146": Erratum("cf796083ecfc", _HOURS),
    "bbh_date_understanding_157": Erratum("1405d2efba91", _THANKSGIVING),
    "bbh_date_understanding_163": Erratum("67742975221b", _HOURS),
    "bbh_date_understanding_164": Erratum("ab4889a49eae", _HOURS),
    "bbh_date_understanding_180": Erratum("58bf44bad7ee", _ANNIVERSARY),
    "bbh_date_understanding_184": Erratum("ac2ce5331968", _ANNIVERSARY),
    "bbh_date_understanding_185": Erratum("c3536eed4710", _HOURS),
    "bbh_date_understanding_202": Erratum("5f9dca4cdf1f", _THANKSGIVING),
    "bbh_date_understanding_211": Erratum("5697c663de43", _HOURS),
    "bbh_date_understanding_244": Erratum("3580e9160dfd", _ANNIVERSARY),
    "bbh_movie_recommendation_163": Erratum("b0f72830ec93", _SPLIT_OPTIONS),
    "bbh_ruin_names_99": Erratum("be63d51fcdae", _SPLIT_OPTIONS),
    "bbh_ruin_names_144": Erratum("542662ad8c8d", _SPLIT_OPTIONS),
    "bbh_ruin_names_40": Erratum("6d35b36cd95f", "the gold option equals the unchanged name"),
    "bbh_snarks_86": Erratum("f7719066cbcc", "the two options are identical"),
    "bbh_snarks_88": Erratum("f18fc2eef838", "the question is cut off after '(A) The NB'"),
    "bbh_causal_judgement_32": Erratum("8be7d14d3a4c", _OPPOSITE_TARGET.format(119)),
    "bbh_causal_judgement_119": Erratum("3baece6897f7", _OPPOSITE_TARGET.format(32)),
    "bbh_causal_judgement_36": Erratum("25691afad6a9", _OPPOSITE_TARGET.format(104)),
    "bbh_causal_judgement_104": Erratum("39df691f8a75", _OPPOSITE_TARGET.format(36)),
    "bbh_sports_understanding_27": Erratum("14d79b608198", _SAME_QUESTION.format(155)),
    "bbh_sports_understanding_155": Erratum("14d79b608198", _SAME_QUESTION.format(27)),
    "bbh_sports_understanding_80": Erratum("b3d631116272", _SAME_QUESTION.format(227)),
    "bbh_sports_understanding_227": Erratum("b3d631116272", _SAME_QUESTION.format(80)),
    **_make_errata(_CIRCLES, "circle", "ellipse"),
    **_make_errata(_RECTANGLES, "rectangle", "trapezoid"),
}
"""Fault by sample id. Faulty rows are asked and scored as published, and listed in results."""


fault_of = make_fault_finder(ERRATA)
"""Returns the known error of a row, if the row is the published one."""

TABLES = tuple(sorted(SUBSETS))
PROMPT_FILES = tuple(f"cot-prompts/{subset}.txt" for subset in TABLES)

LAYOUT = Layout(
    tables=TABLES,
    stems=("bbh/{table}", "{table}", "{table}/test", "data/{table}", "data/{table}/test"),
    texts=PROMPT_FILES,
    folders=("BIG-Bench-Hard", "bigbench-hard"),
    hubs={
        "huggingface": HubRepo("lukaemon/bbh", "main"),
        "modelscope": HubRepo("evalscope/bbh", "master"),
    },
    companions=CompanionFiles(
        repo="suzgunmirac/BIG-Bench-Hard",
        commit="9ee07bd481feebf959a6b59d61ea57bdcf30964d",
        names=PROMPT_FILES,
        needed_for="prompts with worked examples",
    ),
    rows={name: facts.rows for name, facts in SUBSETS.items()},
    checksums=Path(__file__).with_name("checksums.txt"),
)
"""The files of commit 9ee07bd."""

TOOL_TASKS = (
    ToolTask(tool="evalscope", name="bbh(?:_(.+))?", protocol="evalscope", shots=3),
    ToolTask(tool="lm-eval", name="bbh_cot_fewshot_(.+)", protocol="paper"),
    ToolTask(tool="lm-eval", name="bbh_fewshot_(.+)", protocol="answer-only"),
    ToolTask(
        tool="lm-eval",
        name="bbh_(?:cot_)?zeroshot_(.+)",
        protocol="evalscope",
        reader="robust",
        args={"few_shot_num": 0},
    ),
    ToolTask(
        tool="inspect",
        name="bbh",
        protocol="evalscope",
        reader="robust",
        args={"few_shot_num": 0},
    ),
    ToolTask(
        tool="opencompass",
        name="bbh[-_](.+)",
        protocol="evalscope",
        args={"few_shot_num": 0},
        rules={"": "free form"} | dict.fromkeys(CHOICE_SUBSETS, "choice"),
    ),
    ToolTask(tool="verifiers", name="bbh", shots=3),
)
"""BBH's names in the logs of other tools."""

# --- recorded outputs: counts by subset and the published means ---------------------------------

GOLDEN_READERS = {"cot": "paper", "answer_only": "answer-only"}
"""The reader that a recording's rule describes, by the recording's setting."""

GOLDEN_MEANS = {
    "macro_27_subsets": "macro_accuracy",
    "macro_23_tasks": "macro_23",
    "nlp_12_tasks": "nlp_12",
    "algorithmic_11_tasks": "algorithmic_11",
}
"""Metric by its name in the golden file."""

PERCENT_TOLERANCE = 1e-9
"""The golden file has all digits, in percent."""


def golden_settings(golden: Golden, _: Sequence[Mapping[str, Any]]) -> RecordingSetup:
    """Return the settings of a recording; its setting names the reader."""
    setting = golden["setting"]
    if setting not in GOLDEN_READERS:
        raise DataError(
            "bbh.unknown_setting", setting=setting, hint=did_you_mean(setting, GOLDEN_READERS)
        )
    return RecordingSetup({}, "paper", [GOLDEN_READERS[setting]])


def golden_figures(golden: Golden, recorded: GradedRecording) -> Iterator[RecordedFigure]:
    """Yield the rows, right answers and means of the full set, then the counts of each subset."""
    summary, overall = golden["summary"], recorded.overall
    yield RecordedFigure("rows", summary["n_total"], overall.n)
    yield RecordedFigure("correct", summary["correct_total"], overall.outcomes["correct"])
    means = {"micro accuracy": ("micro_6511_rows", "accuracy")}
    means |= {metric: (name, metric) for name, metric in GOLDEN_MEANS.items()}
    for label, (name, metric) in means.items():
        value = recorded.metrics.get(metric)
        yield RecordedFigure(
            label, summary[name], None if value is None else 100 * value, PERCENT_TOLERANCE
        )
    for name, facts in golden["subsets"].items():
        outcomes = recorded.subsets.get(name, RecordedScores()).outcomes
        yield RecordedFigure(
            f"{name}, correct", facts["correct"], outcomes.get("correct"), is_of_subset=True
        )
        if (unmarked_count := facts["no_answer_marker"]) is not None:
            yield RecordedFigure(
                f"{name}, without marker",
                unmarked_count,
                outcomes.get("unparsed"),
                is_of_subset=True,
            )


GOLDEN = GoldenCheck(settings=golden_settings, figures=golden_figures, recorded_gold=False)
