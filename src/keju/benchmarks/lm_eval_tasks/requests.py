"""The requests of a task: built by lm-eval in one go, in the order of its documents.

lm-eval draws worked examples from one stream of random numbers, so that the examples of a document
depend on all documents before it. So the requests of the whole task are always built, and a part of
a run takes some of them. They are cached on disk with their documents: a later session sends the
same prompts, even where a task shuffles while it loads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keju.benchmarks.lm_eval_tasks.catalog import (
    NUMPY_SEED,
    RANDOM_SEED,
    cache_folder,
    package_version,
    quiet,
)
from keju.errors import ConfigError
from keju.files import make_file_name, whole_file

FORMAT = 1
"""The format of cached requests."""
GENERATE, ROLLING = "generate_until", "loglikelihood_rolling"


class PromptSettings(NamedTuple):
    """The settings that shape the prompts of a task."""

    shots: int | None
    seed: int
    is_chat: bool
    multiturn: bool
    system: str | None


class TaskRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of a document: a context and, where its probability is asked for, a text."""

    context: str
    text: str = ""


class DocumentRequests(msgspec.Struct, frozen=True):
    """A document of a task and its requests, in lm-eval's order."""

    number: int
    document: Any
    requests: list[TaskRequest]


class TaskRequests(msgspec.Struct):
    """All requests of a task."""

    kind: str
    """``generate_until``, ``loglikelihood`` or ``loglikelihood_rolling``."""
    generation: dict[str, Any]
    """lm-eval's settings of generation; empty for other kinds."""
    documents: list[DocumentRequests]


def prepare_task(task: Any, settings: PromptSettings, name: str) -> int:
    """Set the number of worked examples and their seed as lm-eval does; return the number."""
    own_number = task.get_config("num_fewshot")
    if settings.shots is not None and own_number == 0 and settings.shots:
        raise ConfigError("lm_eval.shots_fixed", name=name, task=task.config.task)
    number = settings.shots if settings.shots is not None else own_number or 0
    task.set_config(key="num_fewshot", value=number)
    task.set_fewshot_seed(seed=settings.seed)
    return int(number)


def read_or_build(
    spec: str, tasks: Mapping[str, Any], settings: PromptSettings, fingerprints: Mapping[str, str]
) -> dict[str, TaskRequests]:
    """Return the requests of prepared tasks, from the cache if those of all tasks are in it.

    `spec` is the name that was loaded. Tasks of one name share a stream of random numbers, so they
    are built together.
    """
    paths = {
        name: _cache_path(spec, task, settings, fingerprints.get(name, ""))
        for name, task in tasks.items()
    }
    with suppress(OSError, msgspec.DecodeError):
        return {
            name: msgspec.json.decode(path.read_bytes(), type=TaskRequests)
            for name, path in paths.items()
        }
    requests = {name: _build(task, settings) for name, task in tasks.items()}
    for name, path in paths.items():
        if (encoded := _encode_exactly(requests[name])) is not None:
            with whole_file(path) as file:
                file.write(encoded)
    return requests


def _cache_path(spec: str, task: Any, settings: PromptSettings, fingerprint: str) -> Path:
    """Return the file of the requests that these settings and data give."""
    identity = [
        *(FORMAT, package_version(), spec, str(task.config.task), str(task.VERSION), fingerprint),
        *(task.config.num_fewshot, settings, RANDOM_SEED, NUMPY_SEED),
        task.dump_config(),
    ]
    text = json.dumps(identity, sort_keys=True, ensure_ascii=False, default=_describe)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return cache_folder() / "prompts" / f"{make_file_name(str(task.config.task))}-{digest}.json"


def _describe(value: Any) -> str:
    """Return the text of a value that JSON does not know; never an address in memory."""
    name = getattr(value, "__qualname__", None)
    return str(name) if name else type(value).__qualname__


def _encode_exactly(requests: TaskRequests) -> bytes | None:
    """Return the requests as JSON; None if their documents would come back in another form."""
    try:
        encoded = msgspec.json.encode(requests)
        restored = msgspec.json.decode(encoded, type=TaskRequests)
    except (TypeError, ValueError, OverflowError):
        return None
    return encoded if restored == requests else None


def _build(task: Any, settings: PromptSettings) -> TaskRequests:
    def join_turns(turns: Sequence[Mapping[str, str]], **_: object) -> str:
        return json.dumps(turns, ensure_ascii=False)

    with quiet():
        task.build_all_requests(
            system_instruction=settings.system,
            apply_chat_template=settings.is_chat,
            fewshot_as_multiturn=settings.multiturn,
            chat_template=join_turns if settings.is_chat else None,
        )
    kinds = {instance.request_type for instance in task.instances}
    if len(kinds) != 1:
        raise ConfigError("lm_eval.mixed_requests", task=task.config.task, kinds=sorted(kinds))
    (kind,) = kinds
    by_document: dict[int, list[Any]] = {}
    for instance in task.instances:
        by_document.setdefault(instance.doc_id, []).append(instance)
    generation = dict(task.instances[0].args[1]) if kind == GENERATE else {}
    documents = []
    for number, instances in by_document.items():
        instances.sort(key=lambda instance: instance.idx)
        requests = [_make_request(instance.args, kind, generation, task) for instance in instances]
        documents.append(DocumentRequests(number, instances[0].doc, requests))
    return TaskRequests(str(kind), generation, documents)


def _make_request(
    arguments: Sequence[Any], kind: str, generation: Mapping[str, Any], task: Any
) -> TaskRequest:
    if len(arguments) > 2:
        raise ConfigError("lm_eval.media", task=task.config.task)
    if kind == ROLLING:
        return TaskRequest("", arguments[0])
    if kind == GENERATE:
        if arguments[1] != generation:
            raise ConfigError("lm_eval.mixed_settings", task=task.config.task)
        return TaskRequest(arguments[0])
    return TaskRequest(*arguments)
