"""``keju show``: one question exactly as the model gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import print_json, print_lines
from keju.cli.prepare import exam_for
from keju.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam, Subset
    from keju.types import Sample

app = options.new_app()


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju show bbh",
        "keju show bbh --subset snarks --index 3 --protocol paper",
        "keju show mmlu_pro --subset 'computer science' --json",
    ),
)
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A benchmark; see 'keju list'.")],
    subset: Annotated[
        str | None,
        typer.Option(metavar="S", help="Its first by default.", rich_help_panel=options.DATA),
    ] = None,
    index: Annotated[
        int,
        typer.Option(
            metavar="I",
            help="Position in the subset as published, from 0.",
            rich_help_panel=options.DATA,
        ),
    ] = 0,
    protocol: options.Protocol = None,
    dataset_args: options.DatasetArgs = None,
    data_dir: options.DataDir = None,
    seed: options.Seed = 42,
    as_json: options.Json = False,
) -> None:
    """Show one question of a benchmark: the prompt as it is sent, the options, the gold answer."""
    exam = exam_for(
        name, dataset_args=dataset_args, data_dir=data_dir, protocol=protocol, seed=seed
    )
    sample = find_sample(exam, _own_name(name, subset), index)
    if as_json:
        print_json(exam.describe(sample))
        return
    _print(exam, sample)


def _own_name(benchmark: str, subset: str | None) -> str | None:
    """The name that the benchmark itself gives the subset, where it knows it."""
    from keju.benchmarks import registry

    return subset and (registry.get(benchmark).subset_name(subset) or subset)


def find_sample(exam: Exam, subset: str | None, index: int) -> Sample:
    """The sample at a published position; UsageError names the nearest subset or the range."""
    chosen = _subset(exam, subset)
    for position in range(chosen.start, chosen.stop):
        sample = exam.samples[position]
        if sample.index == index:
            return sample
    last = len(chosen) - 1
    raise UsageError(f"'{chosen.name}' has no question {index}: --index goes from 0 to {last}")


def _subset(exam: Exam, name: str | None) -> Subset:
    if name is None:
        return exam.subsets[0]
    for subset in exam.subsets:
        if subset.name.casefold() == name.casefold():
            return subset
    hint = did_you_mean(name, [subset.name for subset in exam.subsets])
    raise UsageError(f"{exam.benchmark} has no subset '{name}'{hint}")


def _print(exam: Exam, sample: Sample) -> None:
    from keju.report.format import printable

    prompt = exam.render(sample)
    heading = f"{sample.id}  ({exam.benchmark}, protocol {exam.protocol.name})"
    print_lines(heading, "")
    if exam.protocol.form == "completion":
        print_lines("--- text to continue ---", printable(prompt.text))
    else:
        for message in prompt.messages:
            print_lines(f"--- {message.role} ---", printable(message.content))
    print_lines("---", "")
    for label, choice in zip(sample.labels, sample.choices, strict=True):
        print_lines(f"{label}  {printable(choice, one_line=True)}")
    print_lines(f"target: {sample.target or '(not published)'}")
    if sample.id in exam.errata:
        print_lines(f"erratum: {exam.errata[sample.id]}")
