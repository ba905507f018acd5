"""BBH as a benchmark: its data, how it is loaded, and what its exam knows beyond that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keju.benchmarks.base import Benchmark, Exam
from keju.benchmarks.bbh.data import fresh_facts, load_questions
from keju.benchmarks.bbh.facts import (
    ABOUT,
    ERRATA_VERSION,
    GOLDEN,
    LAYOUT,
    MEANS,
    REFERENCES,
    SUBSETS,
    TOOL_TASKS,
    TWO_VALUED,
    fault_of,
)
from keju.benchmarks.bbh.protocols import PROTOCOLS, BBHArgs, BBHProtocol
from keju.benchmarks.bbh.readers import READERS
from keju.benchmarks.kit import Questions, Setup, arrange
from keju.benchmarks.wording import Wording
from keju.errors import ConfigError, DataError
from keju.types import Notice, Sample


class BBHExam(Exam):
    """The chosen subsets under one protocol."""

    def chance(self, sample: Sample) -> float | None:
        """One over the options; a half where two answers are possible.

        A question that lost its options leaves nothing to guess from.
        """
        if SUBSETS[sample.subset].kind in TWO_VALUED:
            return 0.5
        return super().chance(sample) if len(sample.choices) > 1 else None

    def describe(self, sample: Sample) -> dict[str, Any]:
        """As EvalScope shows it: the options stand in the question and are not repeated."""
        document = super().describe(sample)
        document.pop("choices", None)
        assert isinstance(self.protocol, BBHProtocol)
        return document | {"target": self.protocol.shown_target(sample)}


def refuse_final_line(setup: Setup) -> None:
    """ConfigError where ``final_line`` is asked for and would have no effect."""
    assert isinstance(setup.protocol, BBHProtocol)
    if getattr(setup.args, "final_line", False) and not setup.protocol.final_line:
        names = {"benchmark": setup.benchmark.name, "protocol": setup.protocol.name}
        raise ConfigError("bbh.final_line", **names)


def questions(setup: Setup) -> Questions:
    """The questions of the chosen subsets."""
    refuse_final_line(setup)
    assert isinstance(setup.protocol, BBHProtocol)
    lenient = setup.protocol.lenient
    names: list[str] = []
    read: list[Sample] = []
    notices: list[Notice] = []
    for name in subsets_of(setup):
        try:
            read += load_questions(setup.folder, [name], unlabelled=lenient)
            names.append(name)
        except DataError as error:
            if not lenient or len(notices) + 1 == len(subsets_of(setup)):
                raise
            notices.append(Notice("bbh_subset_left_out", {"subset": name, "problem": str(error)}))
    made = arrange("bbh", read, names)
    made.version = f"BIG-Bench-Hard, errata {ERRATA_VERSION}"
    if fresh := fresh_facts(setup.folder):
        made.version = f"fresh questions, generator {fresh.generator}, sha256 {fresh.sha256}"
        values = {"seed": fresh.seed, "difficulty": fresh.difficulty}
        notices.insert(0, Notice("bbh_fresh", values))
    made.warnings = notices
    return made


def subsets_of(setup: Setup) -> Sequence[str]:
    """The chosen subsets; of fresh questions those that there are, unless some were asked for."""
    fresh = fresh_facts(setup.folder)
    if fresh is None:
        return setup.subsets
    if fresh.lang != "en":
        raise ConfigError("bbh.fresh_language", path=setup.folder.path, lang=fresh.lang)
    if setup.args.subset_list is not None:
        return setup.subsets
    return [name for name in setup.subsets if name in fresh.subsets]


def examples(setup: Setup) -> Mapping[str, str]:
    """The worked examples, as the protocol publishes them."""
    assert isinstance(setup.protocol, BBHProtocol)
    return setup.protocol.examples(setup.folder, subsets_of(setup))


def settings(setup: Setup, wording: Wording) -> dict[str, Any]:
    """What shaped the prompts, for the manifest."""
    template = wording.template(bool(setup.shots))
    own = {name: getattr(setup.args, name, None) for name in ("system_prompt", "final_line")}
    usual = {"few_shot_num": setup.shots, "prompt_template": template}
    if fresh := fresh_facts(setup.folder):
        # So that nothing takes them for the published questions.
        own["fresh"] = {
            name: getattr(fresh, name) for name in ("seed", "difficulty", "generator", "sha256")
        }
    return usual | {name: value for name, value in own.items() if value}


BBH = Benchmark(
    name="bbh",
    title="BBH",
    about="BIG-Bench Hard: 27 subsets (23 tasks) of reasoning questions, 6,511 rows",
    aliases=("bigbench-hard",),
    alias_protocols={"bigbench-hard": "mcpbr"},
    subset_about=ABOUT,
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    protocols=PROTOCOLS,
    readers=READERS,
    subset_names=tuple(SUBSETS),
    rows={name: facts.rows for name, facts in SUBSETS.items()},
    count_note="{name}: {rows} rows, published are {published}",
    averages=MEANS,
    references=REFERENCES,
    faults=fault_of,
    Args=BBHArgs,
    golden=GOLDEN,
    exam=BBHExam,
    questions=questions,
    examples=examples,
    refused={
        "few_shot_random": "the worked examples are fixed",
        "shuffle_choices": "options stand in the question's text",
    },
    settings=settings,
)
