"""Print the prompts of lm-eval's own package; it runs in the environment of that package.

Standard input is a JSON object: ``config``, the path of a task below the package's folder of tasks;
``splits``, the rows of each split; ``count``, the number of prompts. The output is a JSON list.
"""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import datasets
import evaluate
import lm_eval
import nltk
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

FEW_SHOT_SEED = 1234
"""The default of lm-eval's command line."""


def skip_metrics() -> None:
    """Let tasks be loaded without their metrics, which download programs and models.

    Prompts do not depend on them.
    """
    evaluate.load = lambda *_: SimpleNamespace(compute=lambda **_: [{"pass@1": 1.0}])
    nltk.data.find = lambda *_: ""
    for name, content in {"langdetect": None, "immutabledict": dict}.items():
        module = ModuleType(name)
        setattr(module, name, content)
        sys.modules.setdefault(name, module)


def main() -> None:
    skip_metrics()
    request = json.load(sys.stdin)
    splits = {name: datasets.Dataset.from_list(rows) for name, rows in request["splits"].items()}
    config = load_yaml(Path(lm_eval.__file__).parent / "tasks" / request["config"])

    class LocalTask(ConfigurableTask):  # type: ignore[misc]
        def download(self, *_args: object, **_settings: object) -> None:
            self.dataset = datasets.DatasetDict(splits)

    task = LocalTask(config=config)
    task.set_fewshot_seed(FEW_SHOT_SEED)
    documents = list(task.test_docs())[: request["count"]]
    prompts = [task.fewshot_context(row, task.config.num_fewshot) for row in documents]
    json.dump(prompts, sys.stdout)


if __name__ == "__main__":
    main()
