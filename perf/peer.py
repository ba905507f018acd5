"""Keju beside EvalScope: the same BBH questions, the same endpoint, the processor time of each.

EvalScope is installed once into an environment of its own in the cache folder (KEJU_PERF_CACHE,
else ~/.cache/keju-perf), never into this repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perf.exam import data_dir
from perf.measure import CACHE, NotMeasured, Row, alternate, run
from perf.nginx import constant_endpoint

VERSION = "1.14.1"
TARGET = 10.0
FEW, MANY, ALL = 2, 40, 250
"""Questions of each subset. The difference of two sizes is free of start-up costs; Keju's larger
size is the whole set, since what it needs for 40 questions of each drowns in the noise."""
IN_FLIGHT = 64
ROUNDS = 3
INSTALL_SECONDS = 900
EVALSCOPE = """
import json, sys
from evalscope import TaskConfig, run_task
run_task(TaskConfig(**json.loads(sys.argv[1])))
"""


def measure() -> Iterator[Row]:
    """CPU that one sample more costs, and CPU of whole runs of equal size."""
    folder = data_dir()
    if folder is None or not (folder / "bbh").is_dir():
        raise NotMeasured("needs the BBH data in KEJU_DATA_DIR")
    cache = Path(os.environ.get(CACHE, "~/.cache/keju-perf")).expanduser()
    python = _environment(cache)
    sizes = _hub_layout(folder / "bbh", cache / "bbh")
    with constant_endpoint() as url, tempfile.TemporaryDirectory() as work:
        common: dict[str, Any] = {"model": "constant", "api_url": url, "datasets": ["bbh"]}
        common |= {"work_dir": work, "eval_batch_size": IN_FLIGHT}

        def keju(limit: int) -> float:
            config = Path(work, "keju.json")
            config.write_text(json.dumps(common | {"data_dir": str(folder), "limit": limit}))
            return run([sys.executable, "-m", "keju", "eval", "--config", config]).cpu

        def evalscope(limit: int) -> float:
            arguments: dict[str, Any] = {
                "api_key": "EMPTY",
                "eval_type": "openai_api",
                "limit": limit,
            }
            arguments |= {"dataset_args": {"bbh": {"local_path": str(cache / "bbh")}}}
            command = (python, "-c", EVALSCOPE, json.dumps(common | arguments))
            return run(command, HF_HOME=str(cache / "hf"), HF_HUB_OFFLINE="1").cpu

        def added(few_seconds: float, many_seconds: float, limit: int) -> float:
            rows = sum(min(size, limit) - FEW for size in sizes)
            return max(many_seconds - few_seconds, 1e-9) / rows

        evalscope(FEW)  # it converts the data on its first run
        slope = alternate(
            ROUNDS,
            lambda: added(keju(FEW), keju(ALL), ALL),
            lambda: added(evalscope(FEW), evalscope(MANY), MANY),
        )
        sides = alternate(ROUNDS, lambda: keju(MANY), lambda: evalscope(MANY))
    yield Row(
        f"peer: CPU a sample, BBH 3-shot, {IN_FLIGHT} in flight",
        f"{slope.keju * 1e6:.0f} µs",
        f"{TARGET:g}x less: EvalScope {slope.peer * 1e6:.0f} µs",
        1 / slope.ratio,
        1 / slope.ratio >= TARGET,
    )
    yield Row(
        f"peer: CPU of a whole run, {MANY} questions of each subset",
        f"{sides.keju:.2f} s",
        f"EvalScope {sides.peer:.2f} s",
        1 / sides.ratio,
    )


def _environment(cache: Path) -> Path:
    """The Python of an environment that holds EvalScope, installed if it is not there yet."""
    folder = cache / f"evalscope-{VERSION}"
    python = folder / "bin" / "python"
    if (folder / "ready").is_file():
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run(
            [*pip, f"evalscope=={VERSION}"],
            check=True,
            timeout=INSTALL_SECONDS,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NotMeasured(f"EvalScope could not be installed: {type(error).__name__}") from None
    (folder / "ready").touch()
    return python


def _hub_layout(data: Path, copy: Path) -> list[int]:
    """Write the questions as EvalScope wants them; return the sizes of the subsets."""
    sizes, configs = [], []
    for file in sorted(data.glob("**/*.json")):
        rows = json.loads(file.read_text()).get("examples")
        if rows is None:
            continue
        (copy / file.stem).mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (copy / file.stem / "test.jsonl").write_text(lines)
        configs.append(
            f"- config_name: {file.stem}\n"
            f"  data_files:\n  - split: test\n    path: {file.stem}/test.jsonl\n"
        )
        sizes.append(len(rows))
    (copy / "README.md").write_text(f"---\nconfigs:\n{''.join(configs)}---\n")
    return sizes
