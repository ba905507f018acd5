"""Tasks of lm-eval where lm-eval is not installed, and commands that have nothing to do with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keju.benchmarks import registry
from keju.benchmarks.lm_eval_tasks.exam import GenerationSettings
from keju.benchmarks.lm_eval_tasks.metrics import as_number, scalar_metrics
from keju.benchmarks.lm_eval_tasks.sources import TaskFolder
from keju.benchmarks.prepare import prepare_exam
from keju.errors import MissingExtra, UsageError
from tests.support.processes import environment

COMMANDS = [
    "import keju.cli; keju.cli.main(['--help'])",
    "import keju.cli; keju.cli.main(['list', 'benchmarks'])",
    "import keju.cli; keju.cli.main(['show', 'demo'])",
    "from keju.benchmarks import registry; registry.get('lm_eval:hellaswag')",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_other_commands_import_nothing_of_lm_eval(command: str, tmp_path: Path) -> None:
    code = f"""
import sys
try:
    {command}
except SystemExit:
    pass
names = [n for n in sys.modules if n.split('.')[0] in ('lm_eval', 'datasets', 'evaluate')]
print('LOADED', names)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout.rstrip().endswith("LOADED []"), done.stdout + done.stderr


def test_without_the_extra_one_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from importlib import metadata

    def no_version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", no_version)
    with pytest.raises(MissingExtra, match=r"lm_eval:piqa needs .*keju\[lm-eval\]"):
        prepare_exam("lm_eval:piqa")


def test_names() -> None:
    assert registry.get("lm_eval:a/b.yaml").name == "lm_eval:b"
    assert registry.get("lm_eval:piqa").name == "lm_eval:piqa"
    with pytest.raises(UsageError, match="names no task"):
        registry.get("lm_eval:")


def test_settings_of_generation_are_those_of_lm_eval() -> None:
    plain = GenerationSettings.of({"until": "\n\n"})
    assert (plain.stop, plain.max_tokens, plain.temperature) == (("\n\n",), 256, 0.0)
    assert not plain.states_limit
    sampled = {"until": ["Q:", ""], "do_sample": True, "temperature": 0.2, "max_tokens": 7}
    settings = GenerationSettings.of(sampled | {"max_gen_toks": 9})
    assert (settings.stop, settings.max_tokens, settings.temperature) == (("Q:",), 9, 0.2)
    greedy = GenerationSettings.of({"do_sample": False, "temperature": 0.7})
    assert greedy.temperature == 0.0


def test_shares_are_shown_and_other_values_are_kept_for_the_aggregation() -> None:
    metrics = {"acc": 1, "em": True, "f1": (0, 1), "perplexity": -12.5, "text": "a"}
    assert scalar_metrics(metrics) == {"acc": 1.0, "em": 1.0}
    assert as_number("1") is None


def test_data_are_found_by_task_then_by_data_set(tmp_path: Path) -> None:
    for place in ("piqa", "cais/mmlu/anatomy"):
        folder = tmp_path / "lm_eval" / place
        folder.mkdir(parents=True)
        (folder / "test.jsonl").write_text(json.dumps({"a": 1}) + "\n")
    places = TaskFolder("lm_eval:x", tmp_path, None, offline=True)
    by_task = places.splits("piqa", "baber/piqa", None)
    assert by_task == {"test": tmp_path / "lm_eval" / "piqa" / "test.jsonl"}
    by_dataset = places.splits("mmlu_anatomy", "cais/mmlu", "anatomy")
    assert by_dataset["test"].parent.name == "anatomy"
    assert places.splits("winogrande", "allenai/winogrande", None) == {}
