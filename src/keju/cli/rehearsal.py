"""``keju eval --dry-run``: everything but the asking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from keju.cli.output import print_lines

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.engine.job import Job

BYTES_PER_TOKEN = 4
"""A rough guide that holds for English and, at three bytes a character, for Chinese."""


def rehearse(config: TaskConfig) -> dict[str, Any]:
    """Load the data, check every setting, render the first prompts and forecast the work."""
    from keju.config.address import shown_url
    from keju.engine.job import make_jobs
    from keju.judges import judging_of
    from keju.models.factory import make_model

    jobs = make_jobs(config)
    make_model(config)
    judging = judging_of(config, jobs)
    if judging is not None:
        judging.check()
    exams = [_forecast(job) for job in jobs]
    document: dict[str, Any] = {
        "dry_run": True,
        "model": config.model,
        "api_url": config.api_url and shown_url(config.api_url),
        "eval_batch_size": config.eval_batch_size,
        "requests": sum(exam["requests"] for exam in exams),
        "prompt_tokens_estimate": sum(exam["prompt_tokens_estimate"] for exam in exams),
        "benchmarks": exams,
    }
    if config.price is not None:
        cost = document["prompt_tokens_estimate"] * config.price.input / 1e6
        document["input_cost_estimate"] = round(cost, 4)
    return document


def _forecast(job: Job) -> dict[str, Any]:
    exam = job.exam
    size = 0
    for sample in exam.samples:
        prompt = exam.render(sample)
        size += sum(len(message.content.encode()) for message in prompt.messages)
    first = exam.render(exam.samples[0])
    return {
        "name": exam.benchmark,
        "protocol": exam.protocol.name,
        "readers": [reader.name for reader in job.readers],
        "n": len(exam.samples),
        "subsets": len(exam.subsets),
        "requests": job.units,
        "prompt_tokens_estimate": size * job.units // len(exam.samples) // BYTES_PER_TOKEN,
        "sampling": msgspec.to_builtins(job.sampling),
        "first_prompt": [msgspec.to_builtins(message) for message in first.messages],
    }


def print_rehearsal(document: dict[str, Any]) -> None:
    """Print the forecast for people."""
    from keju.report.format import compact, printable
    from keju.report.table import render_table

    for exam in document["benchmarks"]:
        print_lines(f"first prompt of {exam['name']}, protocol {exam['protocol']}:")
        for message in exam["first_prompt"]:
            print_lines(f"--- {message['role']} ---", printable(message["content"]))
        print_lines("---", "")
    columns = ["benchmark", "protocol", "readers", "questions", "requests", "input tokens"]
    render_table(
        columns,
        [
            (
                exam["name"],
                exam["protocol"],
                ", ".join(exam["readers"]),
                exam["n"],
                exam["requests"],
                f"about {compact(exam['prompt_tokens_estimate'])}",
            )
            for exam in document["benchmarks"]
        ],
    )
    print_lines(
        "",
        f"dry run: everything is in place; {document['requests']:,} requests would go to "
        f"{document['model']}, at most {document['eval_batch_size']} at once",
    )
    if "input_cost_estimate" in document:
        print_lines(f"input alone would cost about {document['input_cost_estimate']}")
