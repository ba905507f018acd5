"""The data of a task: files of the user below ``lm_eval/NAME``, or the cache of ``datasets``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.errors import DataError
from keju.sources.folder import NoFolder

if TYPE_CHECKING:
    from keju.config import DatasetArgs

FOLDER = "lm_eval"
"""The folder of all tasks below a data directory."""
ENDINGS = (".jsonl", ".parquet")


class TaskFolder(NoFolder):
    """Where the data of tasks are searched, and which files were read."""

    def __init__(self, name: str, top: Path | None, local: Path | None, *, offline: bool) -> None:
        super().__init__(name)
        self.top = top
        """The data directory, which has a folder for each task in ``lm_eval``."""
        self.local = local
        """The folder of the only task, if the settings name it."""
        self.offline = offline

    def candidates(self, task: str, dataset: str, part: str | None) -> list[Path]:
        """Return the folders that may hold a task's data: by its name, then by its data set's."""
        if self.local is not None:
            return [self.local / task, self.local]
        if self.top is None:
            return []
        top = self.top / FOLDER
        by_dataset = top / dataset / part if part else top / dataset
        return [top / task, by_dataset]

    def splits(self, task: str, dataset: str, part: str | None) -> dict[str, Path]:
        """Return the file of each split of a task; empty if the user has none."""
        for folder in self.candidates(task, dataset, part):
            files = sorted(folder.iterdir()) if folder.is_dir() else []
            splits = {file.stem: file for file in files if file.suffix in ENDINGS}
            if splits:
                return splits
        return {}

    def example_path(self, task: str, split: str) -> Path:
        """Return where a split of a task would be found, for the message that it is missing."""
        if self.local is not None:
            return self.local / f"{split}.jsonl"
        top = self.top if self.top is not None else Path("DATA")
        return top / FOLDER / task / f"{split}.jsonl"


def find_folder(name: str, args: DatasetArgs, data_dir: str | None, offline: bool) -> TaskFolder:
    """Return the folders in which the data of a task are searched; none of them is read yet."""
    top = data_dir or os.environ.get("KEJU_DATA_DIR")
    local = Path(args.local_path).expanduser() if args.local_path else None
    if local is not None and not local.is_dir():
        raise DataError("lm_eval.no_folder", path=local)
    return TaskFolder(name, Path(top).expanduser() if top else None, local, offline=offline)


@contextmanager
def serve_data(folder: TaskFolder, fingerprints: dict[str, str]) -> Iterator[None]:
    """Let lm-eval's tasks load the user's files, if there are any, in place of their data sets.

    `fingerprints` receives what identifies the data of each task.
    """
    from lm_eval.api.task import ConfigurableTask

    load_from_hub = ConfigurableTask.download

    def download(task: Any, dataset_kwargs: Any = None, **options: Any) -> None:
        config = task.config
        if config.unsafe_code:
            raise DataError("lm_eval.unsafe", task=config.task)
        dataset, part = str(config.dataset_path or ""), config.dataset_name
        splits = folder.splits(config.task, dataset, part)
        if splits:
            task.dataset = _read_splits(splits)
            fingerprints[config.task] = _note_files(folder, config.task, splits)
            return
        try:
            load_from_hub(task, dataset_kwargs, **options)
        except Exception as error:
            split = config.test_split or config.validation_split or "test"
            problem = next(iter(str(error).splitlines()), "") or type(error).__name__
            path = folder.example_path(config.task, split)
            values = {"task": config.task, "path": path, "dataset": dataset, "problem": problem}
            raise DataError("lm_eval.no_data", **values) from error
        fingerprints[config.task] = _fingerprint(task.dataset)

    ConfigurableTask.download = download
    try:
        yield
    finally:
        ConfigurableTask.download = load_from_hub


def _read_splits(splits: dict[str, Path]) -> Any:
    import datasets
    import pyarrow.parquet

    from keju.sources.files import table_rows

    tables = {}
    for split, path in splits.items():
        if path.suffix == ".parquet":
            tables[split] = datasets.Dataset(pyarrow.parquet.read_table(path))
        else:
            with path.open("rb") as stream:
                tables[split] = datasets.Dataset.from_list(
                    [*table_rows(stream, path.name, str(path))]
                )
    return datasets.DatasetDict(tables)


def _note_files(folder: TaskFolder, task: str, splits: dict[str, Path]) -> str:
    """Note the hash of each file for the manifest, and return a hash of all of them."""
    digest_of_all = hashlib.sha256()
    for path in splits.values():
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        folder.hashes[f"{task}/{path.name}"] = digest
        digest_of_all.update(f"{path.name}\0{digest}\0".encode())
    return digest_of_all.hexdigest()


def _fingerprint(dataset: Any) -> str:
    """Return a hash of a data set from the cache of ``datasets``, which identifies its content."""
    splits = dataset.items() if hasattr(dataset, "items") else [("", dataset)]
    digest_of_all = hashlib.sha256()
    for split, table in splits:
        digest_of_all.update(f"{split}\0{getattr(table, '_fingerprint', '')}\0".encode())
    return digest_of_all.hexdigest()


@contextmanager
def stay_offline(is_offline: bool) -> Iterator[None]:
    """Keep ``datasets`` and the modules of tasks from opening a socket.

    ``datasets`` has read its own settings already. Some tasks fetch data of nltk on import.
    """
    if not is_offline:
        yield
        return
    import datasets.config
    import huggingface_hub.constants

    switches: list[tuple[Any, str, Any]] = [
        (datasets.config, "HF_HUB_OFFLINE", True),
        (huggingface_hub.constants, "HF_HUB_OFFLINE", True),
    ]
    if find_spec("nltk") is not None:
        import nltk

        switches.append((nltk, "download", lambda *_, **__: False))
    before = [getattr(module, name, None) for module, name, _ in switches]
    for module, name, value in switches:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(switches, before, strict=True):
            setattr(module, name, value)
