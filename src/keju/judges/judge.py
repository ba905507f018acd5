"""One judge: a model that gives verdicts, its settings, and notices about its reliability."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple, replace

from keju.benchmarks.prepare import resolve_sampling
from keju.config import Budget, GenerationConfig, JudgeConfig, Price, TaskConfig
from keju.config.address import find_provider, parse_address
from keju.config.load import canonical
from keju.config.strict import StrictSettings
from keju.engine.channel import Channel, ChannelLimits, ReplyWithAttempts
from keju.engine.job import Job, make_jobs
from keju.engine.resume import ReusedUnits, recall
from keju.engine.session import run_loop, run_session
from keju.engine.solver import Solver
from keju.errors import ConfigError, EndpointError, KejuError, Notice, RunIncomplete
from keju.judges.exam import TWO_VERDICTS, JudgeExam, combine_votes, read_verdict, reading_of
from keju.judges.prompts import FIRST_VERSION, PROTOCOLS, VERSION, Kind
from keju.models.base import Model
from keju.models.registry import fit_sampling, is_local, make_model, model_name
from keju.runs.journal import Journal, Records
from keju.runs.manifest import SessionLog
from keju.runs.run import select_counting
from keju.scores.stored_replies import ExamRequests
from keju.scores.usage import UsageMeter
from keju.types import Answer, Fault, Reply, Request, Sample, Sampling, Usage

if TYPE_CHECKING:
    from keju.progress.display import Display

EXCERPT = 120
"""Characters of a reply without a verdict that the error quotes."""
_LOOPBACK = re.compile(r"(?<=://)(?:127\.0\.0\.1|\[::1\]|0\.0\.0\.0)(?=[:/])")
"""This computer in any spelling: ``http://127.0.0.1:8000/v1``, ``http://[::1]/v1``."""
_USUAL_PORT = re.compile(r"^(http://[^/]*):80(?=/)|^(https://[^/]*):443(?=/)")
"""The default port of a scheme: ``https://there:443/v1``."""


@dataclass
class JudgeReplies:
    """The journal's record of a judge's replies about one exam."""

    versions: set[str] = field(default_factory=set)
    """Versions of the prompts that got a verdict."""
    failures: Counter[str] = field(default_factory=Counter)
    """Replies without a verdict, by reason."""
    doubts: int = 0
    """Verdicts in replies that contain different ones."""


class Judge(Solver):
    """One model with a judge's settings. It is also the solver that asks it for verdicts."""

    def __init__(
        self, config: TaskConfig, settings: JudgeConfig, model: str, *, is_second: bool = False
    ) -> None:
        self.settings = settings
        self.kind: Kind = "score" if settings.continuous else "grade"
        self.task = make_judge_task(config, settings, model)
        self.jobs: list[Job] = []
        """The judge's work: one job for each exam."""
        self.replies: list[JudgeReplies] = []
        """The outcomes of its replies, by job."""
        self._exams: Sequence[JudgeExam] = ()
        self._requests = ExamRequests(())
        self.was_asked = False
        """Whether this process sent it a request. Otherwise all verdicts come from the journal."""
        self._code = "second_judge" if is_second else "judge"
        self._candidate = config

    def create_model(self) -> Model:
        """Return the judge's model, not yet started; ConfigError if it cannot be made."""
        try:
            return make_model(self.task)
        except ConfigError as error:
            raise ConfigError("judge_unusable", problem=error) from None

    def check_endpoint(self) -> None:
        """Raise an error for a wrong address, key or model, before any question is asked."""

        async def open_once() -> None:
            model = self.create_model()
            channel = Channel(model, ChannelLimits.of(self.task, model))
            try:
                await channel.open([self.sampling])
            except EndpointError as error:
                raise self.explain_error(error) from None
            finally:
                await channel.close()

        run_loop(open_once)

    @property
    def sampling(self) -> Sampling:
        """How the judge decodes: at temperature 0 unless its settings or its API differ."""
        return self._sampling_and_notices[0]

    @cached_property
    def _sampling_and_notices(self) -> tuple[Sampling, tuple[Notice, ...]]:
        try:
            return fit_sampling(self.task, resolve_sampling(PROTOCOLS[self.kind], self.task))
        except ConfigError as error:
            raise ConfigError("judge_unusable", problem=error) from None

    def sampling_notices(self) -> Iterator[Notice]:
        """Yield the notices about settings that its API does not accept as they are."""
        for notice in self._sampling_and_notices[1]:
            yield Notice("judge_told", {"judge": self.task.model, "notice": notice})

    def make_job(self, exam: JudgeExam) -> Job:
        """Return the answers of an exam as work for this judge."""
        name = model_name(self.task)
        job = Job(
            exam,
            self.sampling,
            list(exam.readers.values()),
            model=name,
            epochs=self.task.repeats,
            detailed=True,
            arm=name,
            repeat_seed=self.task.seed,
        )
        job.solver = self
        return job

    def __call__(
        self, request: Request, channel: Channel, sample: Sample, epoch: int
    ) -> Awaitable[ReplyWithAttempts]:
        """Return the verdict for a request."""
        return self.ask(request, channel)

    async def ask(self, request: Request, channel: Channel) -> ReplyWithAttempts:
        """Ask for a verdict. A reply without exactly one is a failed attempt.

        Failed attempts cost money, so the usage of the last reply includes their tokens. The result
        includes the verdict, so that it is parsed only once.
        """
        total_usage, verdict = Usage(), Answer()

        def check(reply: Reply) -> Reply:
            nonlocal total_usage, verdict
            total_usage = Usage(*map(add, astuple(total_usage), astuple(reply.usage)))
            prompt_text = request.prompt.tail
            verdict = read_verdict(reply.text, prompt_text, self.kind, reply.finish)
            fault = None
            if verdict.value is None:
                excerpt = " ".join(reply.text.split())[-EXCERPT:]
                fault = Fault("malformed", f"{verdict.reason} in the judge's reply: …{excerpt}")
            return replace(reply, usage=total_usage, error=fault)

        exchange = await channel.ask(request, check)
        if exchange.reply.error is not None:
            return exchange
        return exchange._replace(readings=(reading_of(verdict),))

    def assign(self, exams: Sequence[JudgeExam]) -> None:
        """Give the judge the answers of each exam to grade."""
        self.jobs = [self.make_job(exam) for exam in exams]
        self.replies = [JudgeReplies() for _ in exams]
        self._exams, self._requests = exams, ExamRequests(self.jobs)

    def recall(self, path: Path) -> ReusedUnits:
        """Enter the verdicts in the journal at `path`.

        A verdict on the prompt of an earlier version still counts.
        """
        recalled = recall(self._requests, path)
        if not path.is_file() or recalled.count == sum(job.units for job in self.jobs):
            return recalled
        requests = ExamRequests([self.make_job(exam.with_first_prompt()) for exam in self._exams])
        records_by_place = Records(path.parent, path.name).iter_with_positions()
        for number, _, record in select_counting(records_by_place, requests.by_hash):
            place, unit = requests.locate(number)
            if record.reply.error is None and not recalled.done[place][unit]:
                self.jobs[place].recall(unit, record, trusted=True)
                recalled.done[place][unit] = 1
                self.replies[place].versions.add(FIRST_VERSION)
        return recalled

    def count_failures(self, path: Path) -> None:
        """Count the journal's replies without a verdict, by reason, and the doubtful verdicts."""
        if not path.is_file():
            return
        records_by_place = Records(path.parent, path.name).iter_with_positions()
        answers = {  # a later record of the same request replaces an error
            number: record.readings[0].answer
            for number, _, record in select_counting(records_by_place, self._requests.by_hash)
        }
        for number, answer in answers.items():
            replies = self.replies[self._requests.locate(number)[0]]
            if answer.value is None:
                replies.failures[answer.reason] += 1
            else:
                replies.versions.add(VERSION)
                replies.doubts += answer.reason == TWO_VERDICTS

    def votes(self, place: int) -> list[list[str | None]]:
        """Return the verdicts on each answer of one exam, one for each repeat."""
        job = self.jobs[place]
        verdicts: Sequence[str | None] = job.tallies[0].answers or ()
        return [
            list(verdicts[unit : unit + job.epochs]) for unit in range(0, job.units, job.epochs)
        ]

    def verdicts(self, place: int) -> list[str | None]:
        """Return the judge's combined verdict on each answer of one exam."""
        return [combine_votes(votes) for votes in self.votes(place)]

    def run(
        self,
        journal: Journal,
        log: SessionLog,
        recalled: ReusedUnits,
        display: Display | None,
        shared_usage: UsageMeter,
    ) -> KejuError | None:
        """Ask for the missing verdicts; return the error that stopped this early, if any.

        `shared_usage` is what other judges have already used of the same budget. Raise
        EndpointError if the endpoint is not ready.
        """
        self.was_asked = True
        try:
            stop = run_session(
                self.task,
                self.jobs,
                self.create_model(),
                journal,
                log,
                recalled,
                display,
                shared_usage,
            )
        except EndpointError as error:
            raise self.explain_error(error) from None
        return self.explain_error(stop) if isinstance(stop, RunIncomplete) else stop

    def explain_error(self, error: KejuError) -> KejuError:
        """Return `error` with this judge's name, and its settings instead of the candidate's."""
        variable = find_provider(self.task.model).key_variable
        replaced_values: dict[str, Any] = {"key": self.settings.api_key_var or variable}
        (judge_host,) = (_host(place) for place in addresses_of(self.task))
        hosts = [_host(place) for place in addresses_of(self._candidate)]
        hosts.append(_host(_provider_address(self.task.model)))
        if self.settings.api_key_var is None and judge_host not in hosts:
            replaced_values["key"] = Notice("judge_key_setting", {"variable": variable})
        if (missing := self.missing_key()) is not None:
            replaced_values["key"] = Notice(
                "judge_key_missing", {"variable": replaced_values["key"], "problem": missing}
            )
        if self.settings.api_url is None:
            replaced_values["address_and_model"] = Notice("judge_model_setting")
        else:
            replaced_values["address"] = Notice("judge_address_setting")
            replaced_values["address_and_model"] = Notice("judge_settings")
        values = {name: replaced_values.get(name, value) for name, value in error.values.items()}
        problem = Notice(error.code, values)
        kind = EndpointError if isinstance(error, EndpointError) else RunIncomplete
        return kind(f"{self._code}_failed", name=self.task.model, problem=problem)

    def missing_key(self) -> Notice | None:
        """Return the notice about a judge whose settings name a variable that is not set."""
        variable, task = self.settings.api_key_var, self.task
        if variable is None or task.api_url is None or os.environ.get(variable):
            return None
        code = "judge_without_key" if task.api_key is None else "judge_with_candidates_key"
        return Notice(code, {"variable": variable})

    def self_judging_notices(self) -> Iterator[Notice]:
        """Yield the warning about a judge that is, or may be, the candidate itself."""
        if self.task.model == self._candidate.model:
            places = {_normalize_machine(place) for place in addresses_of(self._candidate)}
            is_same_endpoint = any(
                _normalize_machine(place) in places for place in addresses_of(self.task)
            )
            yield Notice(f"{self._code}_is_{'candidate' if is_same_endpoint else 'namesake'}")


def make_judge_task(config: TaskConfig, judge: JudgeConfig, model: str) -> TaskConfig:
    """Return the requests to a judge as a separate task.

    A key is sent only to the host that it is for:

    - The key in the variable of the judge's settings is sent to the judge.
    - The candidate's key is sent to the candidate's host.
    - A provider's key, such as OPENAI_API_KEY, is sent to the provider, or to the host in its own
      variable, such as OPENAI_BASE_URL.

    A judge without an address uses the candidate's if both have the same provider.
    """
    endpoint: dict[str, Any] = {}
    if not is_local(model):
        provider = find_provider(model)
        if config.endpoints and not judge.api_url:
            raise ConfigError("judge_unusable", problem=ConfigError("judge_needs_address"))
        if config.serve and not judge.api_url:
            raise ConfigError("judge_unusable", problem=ConfigError("judge_beside_server"))
        candidate_address = config.api_url if provider == find_provider(config.model) else None
        address = judge.api_url or candidate_address or os.environ.get(provider.url_variable)
        key: Any = os.environ.get(judge.api_key_var or "")
        host = _host(address or provider.home)
        if not key and host in [_host(place) for place in addresses_of(config, only_keyed=True)]:
            key = config.api_key
        elif judge.api_key_var is None and host == _host(_provider_address(model)):
            key = os.environ.get(provider.key_variable)
        endpoint = {"api_url": address, "api_key": key, "ca_file": config.ca_file}
    try:
        return TaskConfig(
            **endpoint,
            model=model,
            datasets=config.datasets,
            generation_config=judge.generation_config,
            repeats=judge.repeats,
            seed=config.seed,
            eval_batch_size=judge.eval_batch_size,
            timeout=judge.timeout,
            attempts=judge.attempts,
            retry_interval=config.retry_interval,
            give_up_after=judge.give_up_after,
            budget=judge.budget,
            price=judge.price,
            work_dir=config.work_dir,
        )
    except ConfigError as error:
        raise ConfigError("judge_unusable", problem=error) from None


def addresses_of(task: TaskConfig, *, only_keyed: bool = False) -> list[str | None]:
    """Return the addresses of a task's model; None for a model without an endpoint.

    `only_keyed` returns only the addresses that get the task's own key.
    """
    if task.endpoints:
        return [
            endpoint.url for endpoint in task.endpoints if not (only_keyed and endpoint.api_key_var)
        ]
    if task.serve:
        return []  # its address is known only after the server is started
    return [None if is_local(task.model) else task.api_url or find_provider(task.model).home]


def _provider_address(model: str) -> str:
    """Return the address that the provider's key is for."""
    provider = find_provider(model)
    return os.environ.get(provider.url_variable) or provider.home


def _host(api_url: str | None) -> str:
    """Return scheme, host and port of an endpoint."""
    scheme, _, location = (_normalize_address(api_url) or "").partition("://")
    return _USUAL_PORT.sub(r"\1\2", f"{scheme}://{location.partition('/')[0]}/")


def _normalize_address(api_url: str | None) -> str | None:
    """Return an endpoint's address in one spelling; an invalid address stays as it is."""
    try:
        return parse_address(api_url).display_url if api_url else None
    except ConfigError:
        return api_url


def _normalize_machine(api_url: str | None) -> str:
    """Return an endpoint's address with one name for this computer and without a default port."""
    return _USUAL_PORT.sub(r"\1\2", _LOOPBACK.sub("localhost", _normalize_address(api_url) or ""))


# Settings for judging a stored run

_OF_ONE_JUDGE = (
    "strategy", "continuous", "repeats", "second", "labelled", "budget", "price",
    "generation_config",
)  # fmt: skip
"""Settings that belong to one judge and do not pass to another."""
_MAPPINGS: dict[str, type[StrictSettings]] = {
    "budget": Budget,
    "price": Price,
    "generation_config": GenerationConfig,
}


def fill_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a judge's settings with all defaults, to replace another judge's settings."""
    fields = JudgeConfig.model_fields.items()
    defaults = {name: field.get_default() for name, field in fields if not field.is_required()}
    return defaults | dict(settings) if settings else {}


def complete_settings(stored: TaskConfig, changed_settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new settings for a `stored` run.

    - If the run names no judge, the settings start from the judge of its exams.
    - Another judge keeps the address and the request limits, but not the other settings.
    - A key does not pass to another address.

    Raise ConfigError if a judge is named but would not be asked.
    """
    changed_settings = canonical({"judge": changed_settings})["judge"]
    if "model" in changed_settings and changed_settings.get("strategy") == "rule":
        raise ConfigError("judge_named_not_asked")
    if stored.judge is None:
        judges = (
            [job.exam.judge for job in make_jobs(stored)]
            if "model" not in changed_settings
            else [None]
        )
        if judges[0] is None or any(judge != judges[0] for judge in judges):
            return dict(changed_settings)
        return judges[0].model_dump(mode="json", exclude_defaults=True) | dict(changed_settings)

    def reset(*names: str) -> dict[str, Any]:
        return {name: JudgeConfig.model_fields[name].default for name in names}

    reset_settings: dict[str, Any] = {}
    if changed_settings.get("api_url", stored.judge.api_url) != stored.judge.api_url:
        reset_settings = reset("api_key_var")
    if changed_settings.get("model", stored.judge.model) == stored.judge.model:
        asks_again = "model" in changed_settings and stored.judge.strategy == "rule"
        return reset_settings | (reset("strategy") if asks_again else {}) | dict(changed_settings)
    objects = {}  # objects replace stored mappings instead of merging with them
    for name, settings in _MAPPINGS.items():
        if isinstance(changed_settings.get(name), Mapping):
            try:
                objects[name] = settings(**changed_settings[name])
            except ConfigError as error:
                raise ConfigError("judge_setting_invalid", name=name, problem=error) from None
    return reset(*_OF_ONE_JUDGE) | reset_settings | dict(changed_settings) | objects
