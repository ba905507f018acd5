"""Assertions about an episode: its tools, their order and arguments, and the state that it leaves.

A question of a user's exam may have two more fields. ``expect`` says which tools an episode should
call, and ``verify`` is a command that checks the state after it::

    expect:
      tools: [list_invoices]                           each of them is called
      not: [delete_invoice]                            none of them is called
      order: [find_customer, list_invoices]            called in this order, others may be between
      arguments: {list_invoices: {customer_id: 7}}     a call has at least these arguments
      schema: {list_invoices: {required: [status]}}    the same call matches a JSON Schema
      max_calls: 4                                     no more calls than this
      score: all                                       what counts; by default the answer
    verify: {command: "python check_state.py {workdir}"}

Every assertion is a separate score of 0 or 1, next to the score of the answer. They depend on the
stored episode alone, so that a run can be scored again at any time.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from keju.benchmarks.grading import PASS
from keju.config.patterns import compile_pattern
from keju.errors import DataError, MissingExtra, TranslatableText, did_you_mean
from keju.types import Episode, Reading, Reply, Sample, Score, ToolCall

EXPECT: Final = "expect"
VERIFY: Final = "verify"
"""The fields of a question, and the keys of `Sample.metadata`."""
SCORE: Final = "score"
ANSWER: Final = "answer"
STATE: Final = "state"
TOOL_LISTS: Final = ("tools", "not", "order")
CALL_CHECKS: Final = ("tools", "not", "order", "arguments", "max_calls")
"""What `expect` can check. ``schema`` belongs to ``arguments``."""
PARTS: Final = {
    ANSWER: ANSWER,
    **{name: f"expect_{name}" for name in CALL_CHECKS},
    STATE: STATE,
}
"""The scores that a question may have, and their names in results."""
PART_NAMES: Final = tuple(PARTS.values())
VERIFY_SECONDS: Final = 60.0
LONGEST_VERIFY: Final = 3600.0
_KEYS: Final = (*CALL_CHECKS, "schema", SCORE)
# A character that models' endpoints do not accept in the name of a tool.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
# `&&`, `|`, `;`, `>`: what only a shell understands
_SHELL_OPERATORS = re.compile(r"[|&;<>()]+")


class StateCheck(NamedTuple):
    """The command that checks the state after an episode."""

    words: tuple[str, ...]
    timeout: float


# --- reading -----------------------------------------------------------------------------------


def read_expectations(
    row: Mapping[str, Any], where: str, *, has_answer: bool
) -> dict[str, dict[str, Any]]:
    """Return the checked fields ``expect`` and ``verify`` of a row; empty if it has neither.

    Raise DataError for everything that has no meaning.
    """
    fields: dict[str, dict[str, Any]] = {}
    expect = _as_mapping(row.get(EXPECT), EXPECT, where)
    names = _as_names(row.get("expected_tools"), "expected_tools", where)
    if names and expect is not None and "tools" in expect:
        raise DataError("custom.expect_twice", where=where)
    if names:
        expect = {**(expect or {}), "tools": names}
    if (verify := _as_mapping(row.get(VERIFY), VERIFY, where)) is not None:
        fields[VERIFY] = _read_verify(verify, where)
    if expect is not None:
        checked = _read_expect(expect, where)
        if not checked.keys() - {SCORE} and VERIFY not in fields:
            raise DataError("custom.expect_empty", where=where)
        fields[EXPECT] = checked
    if fields:
        available = [ANSWER] if has_answer else []
        available += [name for name in CALL_CHECKS if name in _checks_of(fields.get(EXPECT, {}))]
        available += [STATE] if VERIFY in fields else []
        score = fields.get(EXPECT, {}).get(SCORE)
        counted = _read_score(score, available, where)
        fields[EXPECT] = {**fields.get(EXPECT, {}), SCORE: counted}
    return fields


def _checks_of(expect: Mapping[str, Any]) -> set[str]:
    """Return the checks of an expectation; a schema is a check of arguments."""
    return {"arguments" if name == "schema" else name for name in expect if name != SCORE}


def _as_mapping(value: Any, name: str, where: str) -> dict[str, Any] | None:
    """Return a field that is a mapping, or JSON text of one, as in the cell of a table.

    Other text is not meant: a table may have a column of this name.
    """
    if value is None or (isinstance(value, str) and not value.lstrip().startswith("{")):
        return None
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            value = None
    if not isinstance(value, dict):
        raise DataError("custom.expect_form", where=where, name=name)
    return {str(key): member for key, member in value.items()}


def _as_names(value: Any, name: str, where: str) -> list[str]:
    """Return the names of tools in a list, in JSON text of a list, or between commas."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                value = msgspec.json.decode(value)
            except msgspec.DecodeError:
                raise DataError("custom.expect_names", where=where, name=name) from None
        else:
            value = [part.strip() for part in re.split("[,;|]", value) if part.strip()]
    if not isinstance(value, list) or not all(isinstance(tool, str) and tool for tool in value):
        raise DataError("custom.expect_names", where=where, name=name)
    return value


def _read_expect(expect: Mapping[str, Any], where: str) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for key, value in expect.items():
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS)
            raise DataError("custom.expect_key", where=where, key=f"expect.{key}", hint=hint)
        if key in TOOL_LISTS:
            names = _as_names(value, f"expect.{key}", where)
            if not names:
                raise DataError("custom.expect_names", where=where, name=f"expect.{key}")
            checked[key] = names
        elif key in ("arguments", "schema"):
            checked[key] = _read_arguments(key, value, where)
        elif key == "max_calls":
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise DataError("custom.expect_count", where=where)
            checked[key] = value
        else:
            checked[key] = value
    _refuse_contradictions(checked, where)
    return checked


def _read_arguments(key: str, value: Any, where: str) -> dict[str, Any]:
    """Return arguments, or their schemas, by tool."""
    name = f"expect.{key}"
    by_tool = value if isinstance(value, dict) else {}
    if not by_tool or not all(isinstance(fields, dict) and fields for fields in by_tool.values()):
        raise DataError("custom.expect_arguments", where=where, name=name)
    for tool, schema in by_tool.items() if key == "schema" else ():
        try:
            _make_validator(msgspec.json.encode(schema, order="deterministic"))
        except MissingExtra:
            raise
        except Exception as error:
            problem = " ".join(str(error).split())[:200]
            values = {"where": where, "name": f"{name}.{tool}", "problem": problem}
            raise DataError("custom.expect_schema", **values) from None
    return by_tool


def _refuse_contradictions(checked: Mapping[str, Any], where: str) -> None:
    """Raise DataError if no episode can satisfy all assertions."""
    required_tools: dict[str, str] = {}
    for key in ("tools", "order", "arguments", "schema"):
        required_tools |= dict.fromkeys(checked.get(key, ()), key)
    for tool in checked.get("not", ()):
        if tool in required_tools:
            values = {"where": where, "tool": tool, "key": f"expect.{required_tools[tool]}"}
            raise DataError("custom.expect_contrary", **values)
    needed = max(len(required_tools), len(checked.get("order", ())))
    if checked.get("max_calls", needed) < needed:
        values = {"where": where, "most": checked["max_calls"], "n": needed}
        raise DataError("custom.expect_too_few", **values)


def _read_score(score: Any, available: Sequence[str], where: str) -> list[str]:
    """Return the names of the scores that count for the question as a whole."""
    if score is None:
        score = [ANSWER] if ANSWER in available else "all"
    if score == "all":
        return list(available)
    names = [score] if isinstance(score, str) else score
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise DataError("custom.expect_score", where=where, valid=["all", *PARTS])
    for name in names:
        if name not in available:
            hint = did_you_mean(name, ["all", *available])
            raise DataError("custom.expect_score_part", where=where, name=name, hint=hint)
    return list(dict.fromkeys(names))


def _read_verify(fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    if "command" not in fields:
        raise DataError("custom.verify_form", where=where)
    for key in fields:
        if key not in ("command", "timeout_seconds"):
            hint = did_you_mean(str(key), ("command", "timeout_seconds"))
            raise DataError("custom.expect_key", where=where, key=f"verify.{key}", hint=hint)
    command = fields["command"]
    words = command if isinstance(command, list) else _split_command(command, where)
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
        raise DataError("custom.verify_form", where=where)
    seconds = fields.get("timeout_seconds", VERIFY_SECONDS)
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= LONGEST_VERIFY:
        raise DataError("custom.verify_time", where=where, most=int(LONGEST_VERIFY))
    return {"command": list(words), "timeout_seconds": float(seconds)}


def _split_command(command: Any, where: str) -> list[str]:
    """Return the words of a command. No shell runs it, so operators of a shell are refused."""
    if not isinstance(command, str):
        raise DataError("custom.verify_form", where=where)
    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
        operator = next((word for word in words if _SHELL_OPERATORS.fullmatch(word)), None)
        if operator is None:
            return shlex.split(command)
    except ValueError as error:
        raise DataError("custom.verify_quotes", where=where, problem=str(error)) from None
    raise DataError("custom.verify_shell", where=where, operator=operator)


def expected_tools(sample: Sample) -> dict[str, str]:
    """Return the tools that the assertions of a question name, and where they name them."""
    expect = sample.metadata.get(EXPECT, {})
    return {
        str(tool): f"expect.{key}"
        for key in (*TOOL_LISTS, "arguments", "schema")
        for tool in expect.get(key, ())
    }


def state_check(sample: Sample) -> StateCheck | None:
    """Return the command that checks the state after an episode about this question."""
    verify = sample.metadata.get(VERIFY)
    if verify is None:
        return None
    return StateCheck(tuple(verify["command"]), float(verify["timeout_seconds"]))


# --- scoring -----------------------------------------------------------------------------------


class CallMade(NamedTuple):
    """One call of an episode."""

    tool: str
    """The name that the model used: ``SERVER__tool``."""
    arguments: Any
    """None if they are not valid JSON."""
    is_known: bool
    """Whether such a tool was offered."""


def calls_of(episode: Episode) -> list[CallMade]:
    """Return the calls of an episode in their order."""
    calls: list[CallMade] = []
    for turn in _model_turns(episode):
        calls += turn
    return calls


def _model_turns(episode: Episode) -> Iterator[list[CallMade]]:
    """Yield the calls of each turn; the results after a turn say which tools do not exist."""
    turn_calls: tuple[ToolCall, ...] = ()
    unknown: set[str] = set()
    for turn in episode.turns:
        if turn.role == "assistant":
            yield [_read_call(call, call.id not in unknown) for call in turn_calls]
            turn_calls, unknown = turn.calls, set()
        elif turn.role == "tool" and turn.kind == "unknown_tool":
            unknown.add(turn.call)
    yield [_read_call(call, call.id not in unknown) for call in turn_calls]


def _read_call(call: ToolCall, is_known: bool) -> CallMade:
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        arguments = None
    return CallMade(call.name, arguments, is_known)


def is_tool(name: str, expected: str) -> bool:
    """Whether a model's name of a tool is the expected one, with or without its server's name."""
    plain = _NOT_IN_NAMES.sub("_", expected)
    return name in (expected, plain) or name.endswith(f"__{plain}")


def check_calls(expect: Mapping[str, Any], episode: Episode | None) -> dict[str, float]:
    """Return the score of each assertion about calls. An arm without tools calls nothing."""
    calls = calls_of(episode) if episode is not None else []
    known_calls = [call for call in calls if call.is_known]

    def is_called(tool: str) -> bool:
        return any(is_tool(call.tool, tool) for call in known_calls)

    passed: dict[str, bool] = {}
    if "tools" in expect:
        passed["tools"] = all(map(is_called, expect["tools"]))
    if "not" in expect:
        passed["not"] = not any(map(is_called, expect["not"]))
    if "order" in expect:
        remaining = iter(known_calls)
        passed["order"] = all(
            any(is_tool(call.tool, tool) for call in remaining) for tool in expect["order"]
        )
    if "arguments" in expect or "schema" in expect:
        passed["arguments"] = _check_arguments(expect, known_calls)
    if "max_calls" in expect:
        passed["max_calls"] = len(calls) <= expect["max_calls"]
    return {PARTS[name]: float(passed[name]) for name in CALL_CHECKS if name in passed}


def _check_arguments(expect: Mapping[str, Any], calls: Sequence[CallMade]) -> bool:
    """Whether each named tool has a call with the expected arguments."""
    values, schemas = expect.get("arguments", {}), expect.get("schema", {})
    return all(
        any(
            is_tool(call.tool, tool)
            and includes(call.arguments, values.get(tool, {}))
            and (tool not in schemas or _fits(call.arguments, schemas[tool]))
            for call in calls
        )
        for tool in {**values, **schemas}
    )


def includes(value: Any, expected: Any) -> bool:
    """Whether a value of JSON has at least the expected members. Lists have equal lengths."""
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(
            key in value and includes(value[key], member) for key, member in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(map(includes, value, expected))
        )
    if isinstance(expected, bool) or isinstance(value, bool):
        return value is expected
    return bool(value == expected)


def _fits(arguments: Any, schema: Mapping[str, Any]) -> bool:
    encoded = msgspec.json.encode(schema, order="deterministic")
    return bool(_make_validator(encoded).is_valid(arguments))


@lru_cache(maxsize=256)
def _make_validator(schema: bytes) -> Any:
    """Return the validator of a schema. It opens no address, and its patterns take linear time."""
    try:
        import jsonschema
        from referencing import Registry
    except ImportError:
        raise MissingExtra(TranslatableText("extra_for_schemas"), "mcp") from None
    content = msgspec.json.decode(schema)
    kind = jsonschema.validators.validator_for(
        content, default=jsonschema.validators.Draft202012Validator
    )
    kind.check_schema(content)
    _refuse_patterns(content)

    def match_pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not compile_pattern(pattern).all_matches(instance):
            yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")

    safe_kind = jsonschema.validators.extend(kind, {"pattern": match_pattern})
    registry: Any = Registry()
    validator = safe_kind(content, registry=registry)
    validator.is_valid({})  # an address that cannot be resolved is an error now
    return validator


def _refuse_patterns(content: Any) -> None:
    """Raise ValueError for patterns of a schema that cannot run in linear time."""
    if isinstance(content, list):
        for member in content:
            _refuse_patterns(member)
    elif isinstance(content, dict):
        if "patternProperties" in content:
            raise ValueError("patternProperties is not supported")
        if isinstance(pattern := content.get("pattern"), str):
            compile_pattern(pattern)
        for member in content.values():
            _refuse_patterns(member)


def check_state(episode: Episode | None) -> float | None:
    """Return 1 if the state after an episode is right, and 0 if not; None if it is not known.

    An arm without tools changes nothing, so its state is never right.
    """
    result = episode.facts.get(STATE) if episode is not None else None
    if result is None:
        return 0.0
    return float(result["ok"]) if "ok" in result else None


def with_expectations(reading: Reading, sample: Sample, reply: Reply) -> Reading:
    """Return a reading with the scores of all assertions about its question.

    Errors stay as they are. A reply that was cut off or refused keeps its outcome.
    """
    expect = sample.metadata[EXPECT]
    if reading.score.outcome == "error":
        return reading
    parts: dict[str, float | None] = {}
    if sample.target:
        is_open = reading.score.outcome == "ungraded"
        parts[ANSWER] = None if is_open else reading.score.value
    parts |= check_calls(expect, reply.episode)
    if VERIFY in sample.metadata:
        parts[STATE] = check_state(reply.episode)
    return replace(reading, score=combine(reading.score, parts, expect[SCORE]))


def with_verdict(score: Score, verdict: Score, sample: Sample) -> Score:
    """Return the score of a question with assertions, given a judge's verdict on its answer."""
    if EXPECT not in sample.metadata or not score.parts:
        return verdict
    parts: dict[str, float | None] = {
        ANSWER: None if verdict.outcome == "ungraded" else verdict.value
    }
    parts |= {name: value for name, value in score.parts.items() if name != ANSWER}
    counted = sample.metadata[EXPECT][SCORE]
    if STATE in counted:
        parts.setdefault(STATE, None)
    return combine(verdict, parts, counted)


def combine(score: Score, parts: Mapping[str, float | None], counted: Sequence[str]) -> Score:
    """Return the score of a question as a whole: all parts that count must be right.

    A part that is None is not known. Then the whole is not known, if the part counts.
    """
    known_parts = {name: value for name, value in parts.items() if value is not None}
    names = [PARTS[name] for name in counted]
    if list(counted) == [ANSWER] or score.outcome in ("truncated", "refused"):
        return replace(score, parts=known_parts)
    values = [parts[name] for name in names]
    if score.outcome == "unparsed" and ANSWER in counted:
        return replace(score, value=0.0, parts=known_parts)
    if any(value is None for value in values):
        return Score(0.0, "ungraded", score.grader or STATE, known_parts)
    value = min(value for value in values if value is not None)
    return Score(value, "correct" if value >= PASS else "incorrect", score.grader, known_parts)
