"""``keju prompts``: writes the prompts of a benchmark as JSON, one file for each subset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, load_exam, print_lines
from keju.messages import label_text


@command(
    "prompts",
    "keju prompts ceval --protocol tutorial -o lib_prompt",
    "keju prompts bbh --protocol paper -o prompts --dataset-args bbh.few_shot_num=3",
    sets="protocol dataset_args data_dir seed",
)
def prompts(name: str, folder: str, **settings: Any) -> CommandOutput:
    """Write what all questions of a subset share, as JSON: worked examples, instructions, system.

    A file SUBSET.json holds the turns before the question, the beginning of the question's own
    turn, and the first question as it is sent.
    """
    from keju.files import make_file_name, write_json

    exam = load_exam(name, **settings)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = []
    for subset in exam.subsets:
        first_sample = exam.samples[subset.start]
        prompt = exam.render(first_sample)
        document = {
            "benchmark": exam.benchmark,
            "protocol": f"{exam.protocol.name}@{exam.protocol.version}",
            "form": exam.protocol.form,
            "subset": subset.name,
            "title": subset.title or subset.name,
            "messages": [{"role": m.role, "content": m.content} for m in prompt.prefix.messages],
            "lead": prompt.prefix.lead,
            "cue": prompt.cue,
            "first_question": {"id": first_sample.id, "text": prompt.tail},
        }
        file = place / f"{make_file_name(subset.name)}.json"
        write_json(file, document)
        files.append(str(file))
    facts = {"benchmark": exam.benchmark, "protocol": exam.protocol.name, "files": files}
    return CommandOutput(
        facts, lambda: print_lines(label_text("prompts.wrote", n=len(files), folder=place))
    )
