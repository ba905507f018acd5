"""One judge: a model that is asked for verdicts, its settings, and what they say about trust."""

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
from keju.config.address import parse_address, provider_of
from keju.config.load import canonical
from keju.config.strict import StrictSettings
from keju.engine.channel import Channel, Exchange
from keju.engine.job import Job, make_jobs
from keju.engine.limits import Meter
from keju.engine.resume import JobRequests, Recalled, recall
from keju.engine.session import run_session
from keju.engine.solver import Solver
from keju.errors import ConfigError, EndpointError, KejuError, Notice, RunIncomplete
from keju.judges.exam import TWO_VERDICTS, JudgeExam, read_verdict, reading_of, settled
from keju.judges.prompts import FIRST_VERSION, PROTOCOLS, VERSION, Kind
from keju.models.base import Model
from keju.models.registry import fit_sampling, is_local, make_model, model_name
from keju.runs.journal import Journal, Records
from keju.runs.manifest import SessionLog
from keju.runs.run import select_counting
from keju.types import Answer, Fault, Reply, Request, Sample, Sampling, Usage

if TYPE_CHECKING:
    from keju.engine.display import Display

EXCERPT = 120
"""Characters of a reply without a verdict that are kept with the fault."""
_LOOPBACK = re.compile(r"(?<=://)(?:127\.0\.0\.1|\[::1\]|0\.0\.0\.0)(?=[:/])")
"""This computer, whichever way: ``http://127.0.0.1:8000/v1``, ``http://[::1]/v1``."""
_USUAL_PORT = re.compile(r"^(http://[^/]*):80(?=/)|^(https://[^/]*):443(?=/)")
"""A port that may go unsaid: ``https://there:443/v1``."""


@dataclass
class Replies:
    """What the journal says of a judge's replies about one exam."""

    versions: set[str] = field(default_factory=set)
    """Of the prompt, where there is a verdict."""
    failures: Counter[str] = field(default_factory=Counter)
    """Replies without a verdict, by reason."""
    doubts: int = 0
    """Verdicts beside which the reply has others."""


class Judge(Solver):
    """One model, asked under a judge's settings; it solves its own questions."""

    def __init__(
        self, config: TaskConfig, settings: JudgeConfig, model: str, *, second: bool = False
    ) -> None:
        self.settings = settings
        self.kind: Kind = "score" if settings.continuous else "grade"
        self.task = judge_task(config, settings, model)
        self.jobs: list[Job] = []
        """What it is handed: one job for each exam."""
        self.replies: list[Replies] = []
        """What became of asking it, by job."""
        self._exams: Sequence[JudgeExam] = ()
        self._requests = JobRequests(())
        self.asked = False
        """Whether it was asked anything by this process, rather than remembered."""
        self._code = "second_judge" if second else "judge"
        self._candidate = config

    def model(self) -> Model:
        """The judge's model, not yet started; ConfigError if it cannot be made."""
        try:
            return make_model(self.task)
        except ConfigError as error:
            raise ConfigError("judge_unusable", problem=error) from None

    @property
    def sampling(self) -> Sampling:
        """How the judge decodes: at temperature 0 unless its settings or its API say otherwise."""
        return self._fitted[0]

    @cached_property
    def _fitted(self) -> tuple[Sampling, tuple[Notice, ...]]:
        try:
            return fit_sampling(self.task, resolve_sampling(PROTOCOLS[self.kind], self.task))
        except ConfigError as error:
            raise ConfigError("judge_unusable", problem=error) from None

    def told(self) -> Iterator[Notice]:
        """What its API makes of its settings."""
        for notice in self._fitted[1]:
            yield Notice("judge_told", {"judge": self.task.model, "notice": notice})

    def job(self, exam: JudgeExam) -> Job:
        """The answers of an exam as work for this judge."""
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
    ) -> Awaitable[Exchange]:
        """The verdict that a request asks for."""
        return self.ask(request, channel)

    async def ask(self, request: Request, channel: Channel) -> Exchange:
        """Ask for a verdict; a reply without exactly one is a failed attempt.

        Such attempts were paid for: their tokens count with the reply that ends the matter. The
        verdict that made a reply valid is handed on, so that nobody has to read it again.
        """
        paid, verdict = Usage(), Answer()

        def check(reply: Reply) -> Reply:
            nonlocal paid, verdict
            paid = Usage(*map(add, astuple(paid), astuple(reply.usage)))
            shown = request.prompt.tail
            verdict = read_verdict(reply.text, shown, self.kind, reply.finish)
            fault = None
            if verdict.value is None:
                excerpt = " ".join(reply.text.split())[-EXCERPT:]
                fault = Fault("malformed", f"{verdict.reason} in the judge's reply: …{excerpt}")
            return replace(reply, usage=paid, error=fault)

        exchange = await channel.ask(request, check)
        if exchange.reply.error is not None:
            return exchange
        return exchange._replace(readings=(reading_of(verdict),))

    def hand(self, exams: Sequence[JudgeExam]) -> None:
        """Give it the answers of each exam to grade."""
        self.jobs = [self.job(exam) for exam in exams]
        self.replies = [Replies() for _ in exams]
        self._exams, self._requests = exams, JobRequests(self.jobs)

    def recall(self, path: Path) -> Recalled:
        """Enter the verdicts that the journal at `path` holds.

        One that was given in the words of an earlier version counts for what it was.
        """
        recalled = recall(self._requests, path)
        if not path.is_file() or recalled.count == sum(job.units for job in self.jobs):
            return recalled
        requests = JobRequests([self.job(exam.earlier()) for exam in self._exams])
        placed = Records(path.parent, path.name).iter_with_positions()
        for number, _, record in select_counting(placed, requests.by_hash):
            place, unit = requests.locate(number)
            if record.reply.error is None and not recalled.done[place][unit]:
                self.jobs[place].recall(unit, record, trusted=True)
                recalled.done[place][unit] = 1
                self.replies[place].versions.add(FIRST_VERSION)
        return recalled

    def look_back(self, path: Path) -> None:
        """Note why replies in the journal have no verdict, and which verdicts are in doubt."""
        if not path.is_file():
            return
        placed = Records(path.parent, path.name).iter_with_positions()
        answers = {  # a later record of the same request takes the place of an error
            number: record.readings[0].answer
            for number, _, record in select_counting(placed, self._requests.by_hash)
        }
        for number, answer in answers.items():
            replies = self.replies[self._requests.locate(number)[0]]
            if answer.value is None:
                replies.failures[answer.reason] += 1
            else:
                replies.versions.add(VERSION)
                replies.doubts += answer.reason == TWO_VERDICTS

    def votes(self, place: int) -> list[list[str | None]]:
        """The verdicts on each answer of one exam, one for each repeat."""
        job = self.jobs[place]
        verdicts: Sequence[str | None] = job.tallies[0].answers or ()
        return [
            list(verdicts[unit : unit + job.epochs]) for unit in range(0, job.units, job.epochs)
        ]

    def verdicts(self, place: int) -> list[str | None]:
        """What its verdicts on each answer of one exam come to."""
        return [settled(votes) for votes in self.votes(place)]

    def work(
        self,
        journal: Journal,
        log: SessionLog,
        recalled: Recalled,
        display: Display | None,
        spent: Meter,
    ) -> KejuError | None:
        """Give the verdicts that are lacking; return what stopped that early.

        `spent` is what other judges have used of the same budget. EndpointError if the endpoint
        is not ready.
        """
        self.asked = True
        try:
            stop = run_session(
                self.task, self.jobs, self.model(), journal, log, recalled, display, spent
            )
        except EndpointError as error:
            raise self.failed(error) from None
        return self.failed(stop) if isinstance(stop, RunIncomplete) else stop

    def failed(self, error: KejuError) -> KejuError:
        """`error` with this judge's name, and its settings in place of a candidate's."""
        variable = provider_of(self.task.model).key_variable
        own: dict[str, Any] = {"key": self.settings.api_key_var or variable}
        (own_host,) = (_host(place) for place in places_of(self.task))
        hosts = [_host(place) for place in places_of(self._candidate)]
        hosts.append(_host(_usual(self.task.model)))
        if self.settings.api_key_var is None and own_host not in hosts:
            own["key"] = Notice("judge_key_setting", {"variable": variable})
        if (missing := self.missing_key()) is not None:
            own["key"] = Notice("judge_key_missing", {"variable": own["key"], "problem": missing})
        if self.settings.api_url is None:
            own["address_and_model"] = Notice("judge_model_setting")
        else:
            own["address"] = Notice("judge_address_setting")
            own["address_and_model"] = Notice("judge_settings")
        values = {name: own.get(name, value) for name, value in error.values.items()}
        problem = Notice(error.code, values)
        kind = EndpointError if isinstance(error, EndpointError) else RunIncomplete
        return kind(f"{self._code}_failed", name=self.task.model, problem=problem)

    def missing_key(self) -> Notice | None:
        """What became of a judge whose settings name a variable that is not set."""
        variable, task = self.settings.api_key_var, self.task
        if variable is None or task.api_url is None or os.environ.get(variable):
            return None
        code = "judge_without_key" if task.api_key is None else "judge_with_candidates_key"
        return Notice(code, {"variable": variable})

    def kinship(self) -> Iterator[Notice]:
        """The warning about a judge that is, or by its name may be, the candidate."""
        if self.task.model == self._candidate.model:
            places = {_machine(place) for place in places_of(self._candidate)}
            same = any(_machine(place) in places for place in places_of(self.task))
            yield Notice(f"{self._code}_is_{'candidate' if same else 'namesake'}")


def judge_task(config: TaskConfig, judge: JudgeConfig, model: str) -> TaskConfig:
    """Asking a judge as a task of its own.

    A key goes only where it was meant to: the one of the variable that the judge's settings name
    to the judge; the candidate's to the candidate's own host; that of a provider, such as
    OPENAI_API_KEY, to the provider, or to the host of its own variable, such as OPENAI_BASE_URL.
    A judge without an address is at the candidate's where both have the same provider.
    """
    endpoint: dict[str, Any] = {}
    if not is_local(model):
        provider = provider_of(model)
        if config.endpoints and not judge.api_url:
            raise ConfigError("judge_unusable", problem=ConfigError("judge_needs_address"))
        if config.serve and not judge.api_url:
            raise ConfigError("judge_unusable", problem=ConfigError("judge_beside_server"))
        beside = config.api_url if provider == provider_of(config.model) else None
        address = judge.api_url or beside or os.environ.get(provider.url_variable)
        key: Any = os.environ.get(judge.api_key_var or "")
        host = _host(address or provider.home)
        if not key and host in [_host(place) for place in places_of(config, keyed=True)]:
            key = config.api_key
        elif judge.api_key_var is None and host == _host(_usual(model)):
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


def places_of(task: TaskConfig, *, keyed: bool = False) -> list[str | None]:
    """The addresses of a task's model; None where it has no endpoint.

    With `keyed` those alone that the task's own key is for.
    """
    if task.endpoints:
        return [each.url for each in task.endpoints if not (keyed and each.api_key_var)]
    if task.serve:
        return []  # it is known when the server is started
    return [None if is_local(task.model) else task.api_url or provider_of(task.model).home]


def _usual(model: str) -> str:
    """The address that the key of a model's provider is for."""
    provider = provider_of(model)
    return os.environ.get(provider.url_variable) or provider.home


def _host(api_url: str | None) -> str:
    """Scheme, host and port of an endpoint."""
    scheme, _, rest = (_place(api_url) or "").partition("://")
    return _USUAL_PORT.sub(r"\1\2", f"{scheme}://{rest.partition('/')[0]}/")


def _place(api_url: str | None) -> str | None:
    """An endpoint's address in one spelling; what is no address stays as it is."""
    try:
        return parse_address(api_url).shown if api_url else None
    except ConfigError:
        return api_url


def _machine(api_url: str | None) -> str:
    """The place of an endpoint, with one name for this computer and no port that goes unsaid."""
    return _USUAL_PORT.sub(r"\1\2", _LOOPBACK.sub("localhost", _place(api_url) or ""))


# Settings for a stored run

_OF_ONE_JUDGE = (
    "strategy", "continuous", "repeats", "second", "labelled", "budget", "price",
    "generation_config",
)  # fmt: skip
"""Settings of a judge that mean nothing to another one."""
_MAPPINGS: dict[str, type[StrictSettings]] = {
    "budget": Budget,
    "price": Price,
    "generation_config": GenerationConfig,
}


def whole_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A judge's settings with all defaults, so that none of another judge shines through."""
    fields = JudgeConfig.model_fields.items()
    defaults = {name: field.get_default() for name, field in fields if not field.is_required()}
    return defaults | dict(settings) if settings else {}


def complete_settings(stored: TaskConfig, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to lay over those of a `stored` run, where `given` ones are to count.

    Without a judge of the run's own they begin with the one that its exams name. Where it is and
    the limits of asking it pass from one judge to another; whatever else was set up for one does
    not, and a key does not pass to another address. ConfigError if a judge is named and not to be
    asked.
    """
    given = canonical({"judge": given})["judge"]
    if "model" in given and given.get("strategy") == "rule":
        raise ConfigError("judge_named_not_asked")
    if stored.judge is None:
        judges = [job.exam.judge for job in make_jobs(stored)] if "model" not in given else [None]
        if judges[0] is None or any(judge != judges[0] for judge in judges):
            return dict(given)
        return judges[0].model_dump(mode="json", exclude_defaults=True) | dict(given)

    def unset(*names: str) -> dict[str, Any]:
        return {name: JudgeConfig.model_fields[name].default for name in names}

    fresh: dict[str, Any] = {}
    if given.get("api_url", stored.judge.api_url) != stored.judge.api_url:
        fresh = unset("api_key_var")
    if given.get("model", stored.judge.model) == stored.judge.model:
        asks_again = "model" in given and stored.judge.strategy == "rule"
        return fresh | (unset("strategy") if asks_again else {}) | dict(given)
    objects = {}  # they replace stored ones, where a mapping would merge
    for name, settings in _MAPPINGS.items():
        if isinstance(given.get(name), Mapping):
            try:
                objects[name] = settings(**given[name])
            except ConfigError as error:
                raise ConfigError("judge_setting_invalid", name=name, problem=error) from None
    return unset(*_OF_ONE_JUDGE) | fresh | dict(given) | objects
