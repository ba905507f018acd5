"""BixBench as a benchmark: its protocols, and how settings and data become an exam."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from keju.benchmarks.base import Benchmark, DataFacts, Protocol
from keju.benchmarks.bixbench import open_answers, prompts, readers
from keju.benchmarks.bixbench.args import BixBenchArgs
from keju.benchmarks.bixbench.data import read_table
from keju.benchmarks.bixbench.exam import BixBenchExam
from keju.benchmarks.bixbench.facts import HYPOTHESIS, LAYOUT, VERSIONS
from keju.benchmarks.bixbench.prompts import Wording
from keju.benchmarks.bixbench.questions import Questions, Refusal, make_questions
from keju.benchmarks.bixbench.tools import TOOL_TASKS
from keju.benchmarks.choices import LabelStyle
from keju.benchmarks.wording import check_template
from keju.config import DatasetArgs
from keju.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder

ENVIRONMENT, OFFICIAL = "environment", "official"

PROTOCOLS: dict[str, Protocol] = {
    ENVIRONMENT: Protocol(
        name=ENVIRONMENT,
        version="1",
        reader=ENVIRONMENT,
        about="the verifiers environment: a system prompt, the letter alone or a short answer",
    ),
    OFFICIAL: Protocol(
        name=OFFICIAL,
        version="1",
        reader=OFFICIAL,
        about="Future-House's zero-shot script: one message, temperature 1, answer in tags",
        temperature=1.0,
    ),
}
"""The readers named here are those of multiple choice; open answers are read by ``native``."""

RECORDED_SETTINGS = (
    "mode", "answer_mode", "question_source", "add_tf_legend", "max_episodes", "seed",
    "shuffle_options", "with_refusal", "use_think", "all_questions", "compat_shuffle", "no_judge",
)  # fmt: skip


def prepare(args: DatasetArgs, folder: DataFolder, seed: int) -> BixBenchExam:
    """Load one version; its own setting ``seed`` outranks the task's."""
    own = args if isinstance(args, BixBenchArgs) else BixBenchArgs(**_given(args))
    if "seed" not in own.model_fields_set:
        own = own.model_copy(update={"seed": seed})
    protocol = _protocol(own)
    table = read_table(folder, own.data_version)
    if own.all_questions and table.version == "1.5":
        raise ConfigError(
            "all_questions has no effect: v1.5 has one question a row; leave it out, or take"
            " data_version '1.0'"
        )
    questions = make_questions(table, own, _refusal(own, protocol))
    _check_subsets(own, questions)
    template, system = _template(own, protocol), _system(own, protocol)
    style: LabelStyle = "(A) text" if protocol.name == OFFICIAL else "A. text"
    settings: dict[str, Any] = {name: getattr(own, name) for name in RECORDED_SETTINGS}
    return BixBenchExam(
        protocol,
        own,
        questions,
        Wording(template, style, system=system, legend=own.add_tf_legend),
        DataFacts(dict(folder.hashes), table.version, (*questions.notes, *folder.notes)),
        settings | {"prompt_template": template, "system_prompt": system},
    )


def _given(args: DatasetArgs) -> dict[str, Any]:
    return args.model_dump(exclude_unset=True)


def _protocol(args: BixBenchArgs) -> Protocol:
    name = args.protocol or ENVIRONMENT
    if name not in PROTOCOLS:
        raise ConfigError(f"unknown BixBench protocol '{name}'{did_you_mean(name, PROTOCOLS)}")
    if name == OFFICIAL and args.question_source == "hypothesis":
        raise ConfigError(
            "protocol 'official' has no hypothesis view: use protocol 'environment', or"
            " question_source 'mcq'"
        )
    reader = PROTOCOLS[name].reader if args.answer_mode == "mcq" else "native"
    return replace(PROTOCOLS[name], reader=reader)


def _refusal(args: BixBenchArgs, protocol: Protocol) -> Refusal | None:
    if not args.with_refusal:
        return None
    if protocol.name == OFFICIAL:
        return Refusal(prompts.OFFICIAL_REFUSAL, last=False)
    return Refusal(prompts.ENVIRONMENT_REFUSAL, last=True)


def _check_subsets(args: BixBenchArgs, questions: Questions) -> None:
    for name in args.subset_list or ():
        if name.strip().lower() not in (questions.subset, questions.subset.removeprefix("v")):
            raise ConfigError(
                f"subset_list: '{name}' is not asked; the only subset here is '{questions.subset}'"
                " (see data_version and question_source)"
            )
    if args.subset_list == []:
        raise ConfigError("subset_list is empty: leave it out")


def _template(args: BixBenchArgs, protocol: Protocol) -> str:
    mcq = args.answer_mode == "mcq"
    if args.prompt_template is not None:
        required = ["question", "choices"] if mcq else ["question"]
        required += ["legend"] if args.add_tf_legend else []
        check_template(
            args.prompt_template, known=required, required=required, setting="prompt_template"
        )
        return args.prompt_template
    if protocol.name == ENVIRONMENT:
        return prompts.ENVIRONMENT_MCQ if mcq else prompts.ENVIRONMENT_OPEN
    if not mcq:
        return prompts.OFFICIAL_OPEN
    return prompts.OFFICIAL_MCQ_WITH_REFUSAL if args.with_refusal else prompts.OFFICIAL_MCQ


def _system(args: BixBenchArgs, protocol: Protocol) -> str:
    """The system message: the user's, where even an empty one counts, or the protocol's."""
    if args.system_prompt is not None:
        return args.system_prompt
    if protocol.name == OFFICIAL:
        return ""
    mcq = args.answer_mode == "mcq"
    if args.question_source == "hypothesis":
        return prompts.SYSTEM_HYPOTHESIS_MCQ if mcq else prompts.SYSTEM_HYPOTHESIS_OPEN
    return prompts.SYSTEM_MCQ if mcq else prompts.SYSTEM_OPEN


BIXBENCH = Benchmark(
    name="bixbench",
    title="BixBench",
    about="computational biology: 205 questions about real analyses (296 in version 1.0)",
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    protocols=PROTOCOLS,
    readers=dict.fromkeys((*readers.NAMES, *open_answers.NAMES)),  # type: ignore[arg-type]
    subset_names=(*(f"v{v}" for v in VERSIONS), HYPOTHESIS),
    Args=BixBenchArgs,
    make=prepare,
)
"""BixBench (Mitchener et al. 2025): computational biology, versions 1.5 and 1.0."""
