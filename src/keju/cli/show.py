"""``keju show``: one question exactly as the model gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keju.cli.command import Output, command
from keju.cli.common import exam_for, print_lines
from keju.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam
    from keju.types import Sample


@command(
    "show",
    "keju show bbh",
    "keju show bbh --subset snarks --index 3 --protocol paper",
    "keju show mmlu_pro --subset 'computer science' --json",
    sets="protocol dataset_args data_dir seed",
)
def show(name: str, subset: str | None, index: int, **settings: Any) -> Output:
    """Show one question of a benchmark: the prompt as it is sent, the options, the gold answer."""
    from keju.benchmarks import registry
    from keju.report.format import printable

    exam = exam_for(name, **settings)
    if subset is not None:  # the benchmark may know it by another name
        subset = registry.get(name).subset_name(subset) or subset
    sample = find_sample(exam, subset, index)
    prompt = exam.render(sample)
    lines = [f"{sample.id}  ({exam.benchmark}, protocol {exam.protocol.name})", ""]
    if exam.protocol.form == "completion":
        lines += ["--- text to continue ---", printable(prompt.text)]
    else:
        for message in prompt.messages:
            lines += [f"--- {message.role} ---", printable(message.content)]
    lines += ["---", ""]
    for label, choice in zip(sample.labels, sample.choices, strict=True):
        lines.append(f"{label}  {printable(choice, one_line=True)}")
    lines.append(f"target: {sample.target or '(not published)'}")
    if sample.id in exam.errata:
        lines.append(f"erratum: {exam.errata[sample.id]}")
    return Output(exam.describe(sample), lambda: print_lines(*lines))


def find_sample(exam: Exam, name: str | None, index: int) -> Sample:
    """The sample at a published position; UsageError names the nearest subset or the range."""
    if not exam.subsets:
        raise UsageError("no_question_selected", name=exam.benchmark)
    folded = exam.subsets[0].name.casefold() if name is None else name.casefold()
    subset = next((each for each in exam.subsets if each.name.casefold() == folded), None)
    if subset is None:
        hint = did_you_mean(str(name), [subset.name for subset in exam.subsets])
        raise UsageError("cli_no_subset", benchmark=exam.benchmark, name=name, hint=hint)
    for position in range(subset.start, subset.stop):
        sample = exam.samples[position]
        if sample.index == index:
            return sample
    raise UsageError("cli_no_question", subset=subset.name, index=index, last=len(subset) - 1)
