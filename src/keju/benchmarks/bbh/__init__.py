"""BBH (BIG-Bench Hard): 27 subsets of reasoning questions, 6,511 rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from keju.benchmarks.base import Benchmark, DataFacts, Exam
from keju.benchmarks.bbh.data import load_answer_only, load_questions, load_worked_examples
from keju.benchmarks.bbh.exam import BBHExam
from keju.benchmarks.bbh.facts import ERRATA_VERSION, SUBSETS
from keju.benchmarks.bbh.prompts import Wording, choose_template, word_problem, word_subset
from keju.benchmarks.bbh.protocols import PROTOCOLS, SHOTS
from keju.benchmarks.bbh.readers import READERS
from keju.benchmarks.published import count_warnings
from keju.config import DatasetArgs
from keju.errors import ConfigError, did_you_mean
from keju.sources.folder import DataFolder

__all__ = ["BBH", "BBHArgs"]


class BBHArgs(DatasetArgs):
    """Settings of BBH."""

    final_line: bool = False
    """Protocol mcpbr: ask for the bare answer alone on the last line, as its reader needs it."""


class BBH(Benchmark):
    """BIG-Bench Hard under four published protocols."""

    name = "bbh"
    title = "BBH"
    about = "BIG-Bench Hard: 27 subsets (23 tasks) of reasoning questions, 6,511 rows"
    aliases = ("bigbench-hard",)
    protocols = PROTOCOLS
    default_protocol = "evalscope"
    reader_names = tuple(READERS)
    subset_names = tuple(SUBSETS)
    Args: ClassVar[type[DatasetArgs]] = BBHArgs

    def prepare(self, args: DatasetArgs, folder: DataFolder, *, seed: int) -> Exam:
        """Load the chosen subsets and word their prompts; `seed` has nothing to decide here."""
        name = args.protocol or self.default_protocol
        if name not in PROTOCOLS:
            raise ConfigError(f"bbh: unknown protocol '{name}'{did_you_mean(name, PROTOCOLS)}")
        final_line = _final_line(args, name)
        _refuse_what_has_no_effect(args)
        shots = _shots(args.few_shot_num, name)
        template = choose_template(args, name, shots, final_line=final_line)
        names = choose_subsets(args.subset_list)
        questions = load_questions(folder, names)
        wordings = _word_subsets(folder, names, name, shots, template, args.system_prompt)
        settings: dict[str, Any] = {"few_shot_num": shots, "prompt_template": template}
        if args.system_prompt:
            settings["system_prompt"] = args.system_prompt
        if final_line:
            settings["final_line"] = True
        return BBHExam(
            PROTOCOLS[name],
            tuple(questions.samples),
            tuple(questions.subsets),
            wordings,
            DataFacts(
                dict(folder.hashes),
                version=f"BIG-Bench-Hard, errata {ERRATA_VERSION}",
                notes=(*questions.notes, *folder.notes),
            ),
            settings,
            count_warnings(questions.counts),
        )


def choose_subsets(wanted: Sequence[str] | None) -> list[str]:
    """The subsets asked for, in published order; letter case does not matter."""
    if wanted is None:
        return list(SUBSETS)
    if not wanted:
        raise ConfigError("bbh: subset_list is empty: name a subset, or leave it out for all")
    chosen = {name.strip().casefold().replace("-", "_") for name in wanted}
    for name in wanted:
        if name.strip().casefold().replace("-", "_") not in SUBSETS:
            raise ConfigError(f"bbh: unknown subset '{name}'{did_you_mean(name, SUBSETS)}")
    return [name for name in SUBSETS if name in chosen]


def _final_line(args: DatasetArgs, protocol: str) -> bool:
    final_line = isinstance(args, BBHArgs) and args.final_line
    if final_line and protocol != "mcpbr":
        raise ConfigError(f"bbh: final_line belongs to protocol mcpbr, not to {protocol}")
    return final_line


def _refuse_what_has_no_effect(args: DatasetArgs) -> None:
    if args.few_shot_random:
        raise ConfigError("bbh: few_shot_random refused: the worked examples are fixed")
    if args.shuffle_choices:
        raise ConfigError("bbh: shuffle_choices refused: options stand in the question's text")


def _shots(wanted: int | None, protocol: str) -> int:
    allowed = SHOTS[protocol].allowed
    if wanted is None:
        return allowed[0]
    if wanted not in allowed:
        numbers = " or ".join(map(str, sorted(allowed)))
        raise ConfigError(f"bbh: few_shot_num of protocol {protocol} is {numbers}, not {wanted}")
    return wanted


def _word_subsets(
    folder: DataFolder,
    names: Sequence[str],
    protocol: str,
    shots: int,
    template: str,
    system_prompt: str | None,
) -> dict[str, Wording]:
    """The wording of each subset, with its worked examples where there are any."""
    answer_only = load_answer_only(folder, names) if protocol == "answer-only" else {}
    wordings: dict[str, Wording] = {}
    for name in names:
        if protocol == "mcpbr":
            wordings[name] = word_problem(template, name, system_prompt)
            continue
        examples = ""
        if shots:
            examples = answer_only.get(name) or load_worked_examples(folder, name)
        wordings[name] = word_subset(template, {"fewshot": examples}, system_prompt)
    return wordings
