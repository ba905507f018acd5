"""A task or group of lm-eval as an exam: its requests as questions, its scores as readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import eq
from typing import Any

import msgspec

from keju.answers.reader import Reader
from keju.benchmarks.base import DataSource, Exam, Mean, Protocol, Scores, Subset, by_name
from keju.benchmarks.grading import GRADED, LIMIT_CUTS, LIMIT_OF, PASS, REFUSED
from keju.benchmarks.grading import grade as grade_usually
from keju.benchmarks.kit import choose_protocol, choose_subsets, reject_settings
from keju.benchmarks.lm_eval_tasks import catalog
from keju.benchmarks.lm_eval_tasks.metrics import (
    ExamMetrics,
    Item,
    as_number,
    is_mean,
    scalar_metrics,
)
from keju.benchmarks.lm_eval_tasks.pipelines import PipelineReader, describe_answer
from keju.benchmarks.lm_eval_tasks.requests import (
    GENERATE,
    ROLLING,
    DocumentRequests,
    PromptSettings,
    TaskRequests,
    prepare_task,
    read_or_build,
)
from keju.benchmarks.lm_eval_tasks.sources import TaskFolder
from keju.config import DatasetArgs
from keju.errors import ConfigError, Notice
from keju.files import SpooledSequence
from keju.sources.folder import DataFolder
from keju.stats.estimate import Estimate
from keju.types import (
    CUT,
    FILTERED,
    LABELS,
    Answer,
    Continuation,
    Message,
    Prefix,
    Prompt,
    Reading,
    Reply,
    Sample,
    Score,
)

DEFAULT_LIMIT = 256
"""lm-eval's limit of tokens for tasks that set none."""
LIMIT_NAMES = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""lm-eval's names of the limit, the first one that is set counts."""
MOST_RESULTS = 256
NO_TARGET = "∅"
"""The target of questions whose right answer is an empty text."""
MULTIPLE_CHOICE = "multiple_choice"


class LmEvalArgs(DatasetArgs):
    """Settings of lm-eval's tasks."""

    include_path: str | None = None
    """A folder with YAML files of more tasks, as lm-eval's ``--include_path``."""
    fewshot_as_multiturn: bool = True
    """Whether worked examples are turns of the conversation; only with lm-eval-chat."""
    fewshot_seed: int = 1234
    """The seed that draws worked examples; 1234 is lm-eval's."""


REFUSED_SETTINGS = dict.fromkeys(
    ("few_shot_random", "prompt_template", "few_shot_prompt_template", "shuffle_choices"), ""
)


def make(spec: str, args: DatasetArgs, folder: DataFolder, seed: int) -> Exam:
    """Load a task or group, build its requests, and return it as an exam."""
    assert isinstance(args, LmEvalArgs)
    assert isinstance(folder, TaskFolder)
    from keju.benchmarks.lm_eval_tasks import find

    benchmark = find(spec)
    reject_settings(args, REFUSED_SETTINGS, benchmark.name)
    catalog.require_extra(benchmark.name)
    protocol = choose_protocol(benchmark, args.protocol)
    is_chat = protocol.form == "chat"
    system = args.system_prompt or None
    settings = PromptSettings(
        args.few_shot_num, args.fewshot_seed, is_chat, is_chat and args.fewshot_as_multiturn, system
    )
    include_paths = [args.include_path] if args.include_path else []
    with catalog.quiet(), catalog.fixed_seeds():
        loaded = catalog.load(spec, include_paths, folder)
        names = choose_subsets(benchmark.name, args.subset_list, list(loaded.tasks))
        tasks = {name: loaded.tasks[name] for name in names}
        shots = {name: prepare_task(task, settings, benchmark.name) for name, task in tasks.items()}
        requests = read_or_build(spec, tasks, settings, loaded.fingerprints)
    maker = _ExamMaker(benchmark.name, tasks, requests, protocol, loaded.groups)
    return maker.make(folder, settings, shots, seed)


class _ExamMaker:
    """Makes the exam of loaded tasks."""

    def __init__(
        self,
        name: str,
        tasks: dict[str, Any],
        requests: dict[str, TaskRequests],
        protocol: Protocol,
        groups: Mapping[str, Any],
    ) -> None:
        self.name, self.tasks, self.requests, self.groups = name, tasks, requests, groups
        first_task = next(iter(tasks))
        self.kind = requests[first_task].kind
        self.readers = self._make_readers()
        self._check_tasks()
        self.generation = GenerationSettings.of(requests[first_task].generation)
        self.protocol = replace(self._fit_protocol(protocol), headline=self._headline(groups))

    def make(
        self,
        folder: TaskFolder,
        settings: PromptSettings,
        shots: Mapping[str, int],
        seed: int,
    ) -> LmEvalExam:
        samples: list[Sample] = []
        subsets: list[Subset] = []
        documents: list[DocumentRequests] = []
        places: dict[str, int] = {}
        shared: dict[str, str] = {}
        for name, task in self.tasks.items():
            start = len(samples)
            shared[name] = _shared_context(self.requests[name], is_chat=settings.is_chat)
            for document in self.requests[name].documents:
                sample = _make_sample(task, name, document, shared[name])
                places[sample.id] = len(documents)
                documents.append(document)
                samples.append(sample)
            title = str(task.config.task_alias or name)
            subsets.append(Subset(name, start, len(samples), title))
        versions = {name: str(task.VERSION) for name, task in self.tasks.items()}
        stated = next((name for name in self.tasks if not self.generation.states_limit), None)
        hints: tuple[Notice, ...] = ()
        if self.kind == GENERATE and stated is not None:
            hints = (Notice("lm_eval.default_limit", {"name": self.name, "n": DEFAULT_LIMIT}),)
        exam = LmEvalExam(
            benchmark=self.name,
            protocol=self.protocol,
            samples=samples,
            subsets=subsets,
            readers=self.readers,
            data=DataSource(dict(folder.hashes), _join_versions(versions), tuple(folder.notes)),
            averages=(Mean("macro_accuracy", "mean over tasks", tuple((n,) for n in self.tasks)),),
            beside="",
            reads_all=True,
            keeps_items=True,
            hints=hints,
            settings={
                "few_shot_num": shots
                if len(set(shots.values())) > 1
                else next(iter(shots.values())),
                "fewshot_seed": settings.seed,
                "fewshot_as_multiturn": settings.multiturn,
                "generation_kwargs": self.requests[next(iter(self.tasks))].generation,
                "lm_eval": catalog.package_version(),
            }
            | ({"system_prompt": settings.system} if settings.system else {}),
        )
        exam.tasks, exam.documents = self.tasks, _spool(documents)
        exam.places, exam.shared = places, shared
        exam.stops = {
            name: GenerationSettings.of(requests.generation).stop
            for name, requests in self.requests.items()
        }
        exam.calculator = ExamMetrics(self.name, self.tasks, self.groups, self.readers, seed)
        return exam

    def _make_readers(self) -> dict[str, PipelineReader]:
        """Return a reader for each pipeline; tasks of a group with the same name share it."""
        pipelines: dict[str, dict[str, Any]] = {}
        for name, task in self.tasks.items():
            for ensemble in task._filters:
                pipelines.setdefault(str(ensemble.name), {})[name] = ensemble
        return by_name(
            *(PipelineReader(ensembles, self._document_of) for ensembles in pipelines.values())
        )

    def _document_of(self, sample: Sample) -> Any:
        return self.requests[sample.subset].documents[sample.index].document

    def _check_tasks(self) -> None:
        """Refuse a group whose tasks cannot be asked with one set of settings."""
        names = list(self.tasks)
        first_settings = GenerationSettings.of(self.requests[names[0]].generation)
        for name in names[1:]:
            requests = self.requests[name]
            task_settings = GenerationSettings.of(requests.generation)
            if requests.kind != self.kind or task_settings.common != first_settings.common:
                raise ConfigError("lm_eval.mixed_group", name=self.name, one=names[0], other=name)
        missing = [
            name
            for name, task in self.tasks.items()
            if {str(ensemble.name) for ensemble in task._filters} != set(self.readers)
        ]
        if missing:
            raise ConfigError("lm_eval.mixed_filters", name=self.name, other=missing[0])

    def _headline(self, groups: Mapping[str, Any]) -> str:
        """Return the metric to show first: the first one of a group, or of the only task."""
        root = next(iter(groups.values()), None)
        if root is not None and root.aggregate_metric_list:
            metric = str(root.aggregate_metric_list[0].metric)
            return metric if len(groups) == 1 else f"{root.name}/{metric}"
        task = next(iter(self.tasks.values()))
        names = list(task.aggregation())
        if len(self.tasks) > 1 or not names or any(is_mean(task, name) for name in names):
            return "accuracy"
        return str(names[0])

    def _fit_protocol(self, protocol: Protocol) -> Protocol:
        versions = {str(task.VERSION) for task in self.tasks.values()}
        group_versions = [
            group.version for group in self.groups.values() if group.version != "N/A"
        ][:1]
        tasks_version = "+".join([*group_versions, *sorted(versions)])
        version = f"{tasks_version} (lm_eval {catalog.package_version()})"
        first_reader = next(iter(self.readers))
        common: dict[str, Any] = {"version": version, "reader": first_reader}
        if self.kind != GENERATE:
            if protocol.form == "chat":
                raise ConfigError("lm_eval.chat_logprobs", name=self.name)
            return replace(protocol, decode="continuations", **common)
        repeats = max(int(task.config.repeats or 1) for task in self.tasks.values())
        stops = [GenerationSettings.of(task.generation).stop for task in self.requests.values()]
        shared_stops = [term for term in stops[0] if all(term in stop for stop in stops)]
        return replace(
            protocol,
            repeats=repeats,
            temperature=self.generation.temperature,
            max_tokens=self.generation.max_tokens,
            stop=tuple(shared_stops[:MOST_STOPS]),
            **common,
        )


def _spool(documents: list[DocumentRequests]) -> Sequence[DocumentRequests]:
    """Return the documents in a temporary file, or unchanged if they hold more than plain data."""
    spooled: SpooledSequence[DocumentRequests] = SpooledSequence(DocumentRequests)
    try:
        for document in documents:
            spooled.append(document)
        is_exact = all(map(eq, spooled, documents))
    except (TypeError, ValueError, OverflowError):
        return documents
    return spooled if is_exact else documents


MOST_STOPS = 4
"""The most stop texts that endpoints take; the others are cut on our side."""


class GenerationSettings(msgspec.Struct, frozen=True):
    """lm-eval's settings of generation, as Keju asks for them."""

    stop: tuple[str, ...]
    max_tokens: int
    temperature: float
    states_limit: bool

    @classmethod
    def of(cls, generation: Mapping[str, Any]) -> GenerationSettings:
        """Return the settings of a task; greedy unless it says ``do_sample``."""
        until = generation.get("until") or []
        stop = tuple(str(term) for term in ([until] if isinstance(until, str) else until) if term)
        limits = [generation[name] for name in LIMIT_NAMES if generation.get(name) is not None]
        temperature = float(generation.get("temperature") or 0.0)
        if generation.get("do_sample") is False:
            temperature = 0.0
        limit = int(limits[0]) if limits else DEFAULT_LIMIT
        return cls(stop, limit, temperature, bool(limits))

    @property
    def common(self) -> tuple[int, float]:
        """The settings that are equal in all tasks of a group; Keju itself cuts at stop texts."""
        return self.max_tokens, self.temperature


def _join_versions(versions: Mapping[str, str]) -> str:
    if len(set(versions.values())) == 1:
        return next(iter(versions.values()))
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _shared_context(requests: TaskRequests, *, is_chat: bool) -> str:
    """Return the beginning that all contexts of a task share; empty for conversations."""
    if is_chat:
        return ""
    contexts = [
        request.context for d in requests.documents for request in d.requests if request.context
    ]
    if len(contexts) < 2:
        return ""
    # A beginning of the smallest and the largest text is one of all texts.
    lowest, highest = min(contexts), max(contexts)
    different = (n for n, (a, b) in enumerate(zip(lowest, highest, strict=False)) if a != b)
    return lowest[: next(different, min(len(lowest), len(highest)))]


def _make_sample(task: Any, name: str, document: DocumentRequests, shared: str) -> Sample:
    request = document.requests[0]
    context = request.context or request.text
    target = task.doc_to_target(document.document)
    choices = _choices(task, document, shared)
    if isinstance(target, str) and target.strip() in choices:
        target = choices.index(target.strip())
    labelled = choices and isinstance(target, int) and 0 <= target < len(choices)
    if getattr(task, "multiple_input", 0):
        right = task.doc_to_text(document.document)
        labelled, target = choices and isinstance(right, int) and right < len(choices), right
    return Sample(
        id=f"{name}_{document.number}",
        subset=name,
        index=document.number,
        text=context.removeprefix(shared),
        target=LABELS[target] if labelled else _target_text(target),
        choices=choices,
        metadata={"doc_id": document.number},
    )


def _choices(task: Any, document: DocumentRequests, shared: str) -> tuple[str, ...]:
    """Return the texts among which a question chooses; none for other questions."""
    if task.OUTPUT_TYPE != MULTIPLE_CHOICE or len(document.requests) < 2:
        return ()
    conditional = [request for request in document.requests if request.context]
    if getattr(task, "multiple_input", 0):
        choices = tuple(request.context.removeprefix(shared) for request in conditional)
    else:
        choices = tuple(request.text.strip() for request in conditional)
    is_plain = 2 <= len(choices) <= len(LABELS) and all(choices)
    return choices if is_plain else ()


def _target_text(target: Any) -> str:
    if isinstance(target, list):
        target = target[0] if len(target) == 1 else target
    return str(target).strip() or NO_TARGET


@dataclass(kw_only=True, eq=False)
class LmEvalExam(Exam):
    """The documents of one or more tasks of lm-eval."""

    tasks: Mapping[str, Any] = field(default_factory=dict)
    documents: Sequence[DocumentRequests] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    """The place of each sample's document, by its id: a part of the exam has fewer samples."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """The beginning that all contexts of a task share."""
    stops: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    calculator: ExamMetrics | None = None
    _prefixes: dict[Any, Prefix] = field(default_factory=dict)
    _results: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """The last results of tasks: a reply is read and then counted."""

    def document_of(self, sample: Sample) -> DocumentRequests:
        """Return a sample's document with its requests."""
        return self.documents[self.places[sample.id]]

    def render(self, sample: Sample) -> Prompt:
        context = self.document_of(sample).requests[0].context
        if self.protocol.form == "chat":
            return self._render_turns(context)
        shared = self.shared[sample.subset]
        if not context.startswith(shared):
            return Prompt(self._prefix((), ""), context)
        return Prompt(self._prefix((), shared), context[len(shared) :])

    def _render_turns(self, encoded: str) -> Prompt:
        turns = [Message(turn["role"], turn["content"]) for turn in msgspec.json.decode(encoded)]
        cue = turns.pop().content if turns[-1].role == "assistant" else ""
        return Prompt(self._prefix(tuple(turns[:-1]), ""), turns[-1].content, cue)

    def _prefix(self, turns: tuple[Message, ...], lead: str) -> Prefix:
        """Return one object for equal prefixes, so that their questions run together."""
        key = (*((turn.role, turn.content) for turn in turns), lead)
        if key not in self._prefixes:
            self._prefixes[key] = Prefix(turns, lead)
        return self._prefixes[key]

    def continuations(self, sample: Sample) -> tuple[Continuation, ...]:
        rolling = self.tasks[sample.subset].OUTPUT_TYPE == ROLLING
        requests = self.document_of(sample).requests
        return tuple([Continuation(request.context, request.text, rolling) for request in requests])

    def chance(self, sample: Sample) -> float | None:
        """The expected score of a guess; only where one of the options is right."""
        return 1 / len(sample.choices) if len(sample.target) == 1 and sample.choices else None

    # --- scores ---------------------------------------------------------------------------------

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        if not isinstance(reader, PipelineReader):
            return grade_usually(reply, sample, reader)
        if reply.fault is not None:
            return Reading(reader.name, Answer(reason=reply.fault.kind), Score(0.0, "error"))
        if reply.finish == FILTERED:
            return Reading(reader.name, Answer(reason=FILTERED), Score(0.0, "error"))
        if reply.refused:
            return Reading(reader.name, Answer(reason=REFUSED), Score(0.0, "refused"))
        if reply.cut_by in LIMIT_CUTS:
            answer = Answer(reason=LIMIT_OF + reply.cut_by)
            return Reading(reader.name, answer, Score(0.0, "truncated"))
        filtered = self._filter(reply, sample, reader)
        metrics = self._score(sample, filtered)
        parts = scalar_metrics(metrics)
        answer = self._describe(reply, sample, filtered)
        value = self._headline_value(reply, sample, metrics)
        if value is None:
            return Reading(reader.name, answer, Score(0.0, "unlabelled", parts=parts))
        outcome = "correct" if value >= PASS else "incorrect"
        if reply.finish == CUT and not reply.compared and not self._is_stopped(reply, sample):
            outcome = "truncated"
        elif answer.value is None and not value:
            outcome = "unparsed"
        return Reading(reader.name, answer, Score(value, outcome, parts=parts))  # type: ignore[arg-type]

    def item(self, reply: Reply, sample: Sample, reader: Reader) -> Any:
        """Return what the metrics need of a reply; None where it has no grade."""
        if not isinstance(reader, PipelineReader) or reply.fault is not None:
            return None
        if reply.finish == FILTERED:
            return None
        if reply.refused or reply.cut_by in LIMIT_CUTS:
            return Item(reader.name, {}, None)
        if reader.reads_all_repeats:
            return Item(reader.name, None, self.responses(reply, sample))
        filtered = self._filter(reply, sample, reader)
        return Item(reader.name, self._score(sample, filtered), None)

    def responses(self, reply: Reply, sample: Sample) -> list[Any]:
        """Return a reply in lm-eval's form: a text, or the scores of each request in order."""
        if reply.continuations is None:
            return [self._cut(reply.text, sample)]
        if self.tasks[sample.subset].OUTPUT_TYPE == ROLLING:
            return [score.logprob for score in reply.continuations]
        return [(score.logprob, score.greedy) for score in reply.continuations]

    def _cut(self, text: str, sample: Sample) -> str:
        """Cut a text at each stop text, as lm-eval does, also where the endpoint has cut it."""
        for term in self.stops[sample.subset]:
            text = text.split(term)[0]
        return text

    def _is_stopped(self, reply: Reply, sample: Sample) -> bool:
        return any(term in reply.text for term in self.stops[sample.subset])

    def _filter(self, reply: Reply, sample: Sample, reader: PipelineReader) -> list[Any]:
        document = self.document_of(sample).document
        return reader.filter_one(self.responses(reply, sample), document, sample.subset)

    def _score(self, sample: Sample, filtered: list[Any]) -> dict[str, Any]:
        key = (sample.id, repr(filtered))
        if key not in self._results:
            if len(self._results) >= MOST_RESULTS:
                self._results.clear()
            document = self.document_of(sample).document
            task = self.tasks[sample.subset]
            self._results[key] = dict(task.process_results(document, filtered))
        return self._results[key]

    def _headline_value(
        self, reply: Reply, sample: Sample, metrics: Mapping[str, Any]
    ) -> float | None:
        """Return the first metric whose mean is reported, if it is a share; for other questions
        with options, whether the likeliest one is right; else None."""
        task = self.tasks[sample.subset]
        for name in dict.fromkeys([*task.aggregation(), *metrics]):
            value = as_number(metrics.get(name))
            if is_mean(task, name) and value is not None and 0 <= value <= 1:
                return value
        if sample.choices and reply.continuations is not None and sample.target in LABELS:
            return float(_likeliest(reply, sample) == sample.target)
        return None

    def _describe(self, reply: Reply, sample: Sample, filtered: list[Any]) -> Answer:
        """Return the answer to show: the likeliest option, or what the filters found."""
        if reply.continuations is None:
            return describe_answer(filtered[0])
        if sample.choices:
            return Answer(_likeliest(reply, sample), "labels")
        scored = reply.continuations[0]
        note = " (greedy)" if scored.greedy else ""
        return Answer(f"{scored.logprob:.4f}{note}", "labels")

    def metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        """The metrics of lm-eval, under their own names."""
        if self.calculator is None:
            return {}
        return self.calculator.compute(self, scores, GRADED)


def _likeliest(reply: Reply, sample: Sample) -> str:
    """Return the label of the likeliest option."""
    scores = [score.logprob for score in (reply.continuations or ())[: len(sample.choices)]]
    return LABELS[scores.index(max(scores))]
