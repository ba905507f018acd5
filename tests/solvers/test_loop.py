"""The tool loop against an endpoint on loopback: what is sent, what is kept, why it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from keju.config import AgentLimits, Price
from keju.engine.channel import Channel, ChannelLimits, ReplyWithAttempts
from keju.errors import ConfigError, EndpointError
from keju.models.openai.client import OpenAIModel
from keju.scores.tally import summarize_tool_use
from keju.solvers.loop import ToolLoop
from keju.solvers.text_tool_calls import parse_calls
from keju.solvers.toolbox import CombinedTools, ToolResult, ToolsLost
from keju.types import Prefix, Prompt, Request, Sample, Sampling, Turn
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, Raw
from tests.support.tools import Functions, calling, results_in

SAMPLE = Sample(id="q1", subset="s", index=0, text="2+3?", target="5")
REQUEST = Request(Prompt(Prefix(), "What is 2+3?"), Sampling(), hash="h")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def solve(
    answers: Callable[[EndpointRequest], Any],
    functions: Mapping[str, Callable[..., Any]] | None = None,
    agent: dict[str, Any] | None = None,
    *,
    price: Price | None = None,
    source: Functions | None = None,
    attempts: int = 5,
    **plan: Any,
) -> tuple[ReplyWithAttempts, list[dict[str, Any]]]:
    """One episode; the bodies that the endpoint answered."""
    bodies: list[dict[str, Any]] = []

    def record_and_answer(request: EndpointRequest) -> Any:
        bodies.append(request.body)
        return answers(request)

    loop = ToolLoop(
        source or Functions(functions or {"add": add}), AgentLimits(**agent or {}), price
    )
    with FaultyEndpoint(Plan(answers=record_and_answer, **plan)) as endpoint:
        limits = ChannelLimits(
            concurrency=1, timeout=5, attempts=attempts, give_up_after=5, retry_interval=0.01
        )

        async def scenario() -> ReplyWithAttempts:
            channel = Channel(OpenAIModel("m", api_url=endpoint.url), limits)
            await loop.open()
            try:
                async with channel.slot():
                    return await loop(REQUEST, channel, SAMPLE, 0)
            finally:
                await loop.close()
                await channel.close()

        return asyncio.run(scenario()), bodies


def sums(request: EndpointRequest) -> Any:
    """Calls the calculator once and says what it gave."""
    results = results_in(request)
    return f"So the answer is {results[0]}." if results else calling(("add", {"a": 2, "b": 3}))


def _always(reply: Any, request: EndpointRequest) -> Any:
    return reply


def turns_of(exchange: ReplyWithAttempts) -> tuple[Turn, ...]:
    assert exchange.reply.episode is not None
    return exchange.reply.episode.turns


def stop_of(exchange: ReplyWithAttempts) -> str:
    assert exchange.reply.episode is not None
    return exchange.reply.episode.stop


def test_a_call_is_answered_and_the_reply_without_calls_is_final() -> None:
    exchange, bodies = solve(sums)
    reply = exchange.reply
    assert (reply.text, reply.finish, stop_of(exchange)) == ("So the answer is 5.", "stop", "final")
    first_body, second_body = bodies
    assert first_body["tools"][0]["function"] == {"name": "add", "description": "Add two numbers.",
                                             "parameters": {"type": "object", "properties": {}}}  # fmt: skip
    assert "tool_choice" not in first_body
    assert second_body["tools"] == first_body["tools"]
    assert second_body["messages"][: len(first_body["messages"])] == first_body["messages"]
    assert second_body["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "5"}
    assert [turn.role for turn in turns_of(exchange)] == ["assistant", "tool", "assistant"]
    used = [t.usage for t in turns_of(exchange) if t.usage is not None]
    assert reply.usage.output == sum(u.output for u in used)
    assert reply.requests == 2


def test_the_models_message_is_sent_back_byte_for_byte() -> None:
    message = (
        b'{"role": "assistant", "content":null,  "reasoning_content":"hm", "signature": "\\u00e9",'
        b'"tool_calls":[{"id":"x","type":"function","function":{"name":"add",'
        b'"arguments":"{\\"a\\": 2,  \\"b\\":3}"}}]}'
    )

    def bytes_of(request: EndpointRequest, attempt: int) -> Raw | None:
        if results_in(request):
            return None
        body = b'{"choices":[{"index":0,"finish_reason":"tool_calls","message":%b}]}' % message
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        return Raw(data=head + body, then="keep")

    build = OpenAIModel("m", api_url="http://x/v1").bodies.build
    exchange, bodies = solve(lambda _: "5", raw=bytes_of)
    assert exchange.reply.text == "5"
    assert turns_of(exchange)[0].reasoning == "hm"
    assert bodies[-1]["messages"][1] == msgspec.json.decode(message)
    turn = Turn(role="assistant", native=message)
    assert message in build(msgspec.structs.replace(REQUEST, turns=(turn,)))


def test_calls_of_one_turn_run_at_once_and_are_answered_in_order() -> None:
    started: list[str] = []
    both_started = asyncio.Event()

    async def wait(name: str) -> str:
        started.append(name)
        if len(started) == 2:
            both_started.set()
        await asyncio.wait_for(both_started.wait(), 60)
        return f"done {name}"

    def answers(request: EndpointRequest) -> Any:
        if results_in(request):
            return ", ".join(results_in(request))
        return calling(("wait", {"name": "slow"}), ("wait", {"name": "fast"}))

    exchange, _ = solve(answers, {"wait": wait})
    assert exchange.reply.text == "done slow, done fast"
    answered = [turn for turn in turns_of(exchange) if turn.role == "tool"]
    assert [turn.call for turn in answered] == ["call_1", "call_2"]


def test_malformed_arguments_and_unknown_tools_are_told_to_the_model() -> None:
    malformed_calls = [("add", '{"a": 2,'), ("add", "[2, 3]"), ("sub", "{}"), ("add", "")]

    def answers(request: EndpointRequest) -> Any:
        if len(results_in(request)) == len(malformed_calls):
            return calling(("add", {"a": 2, "b": 3}), first_number=9)
        return results_in(request)[-1] if results_in(request) else calling(*malformed_calls)

    exchange, bodies = solve(answers, {"add": lambda a=0, b=0: a + b})
    kinds = [turn.kind for turn in turns_of(exchange) if turn.role == "tool"]
    assert kinds == ["bad_arguments", "bad_arguments", "unknown_tool", "ok", "ok"]
    texts = results_in(EndpointRequest("chat", bodies[-1], ""))
    assert "not valid JSON" in texts[0]
    assert "JSON object" in texts[1]
    assert texts[2] == "There is no tool 'sub'. The tools are: add."
    assert exchange.reply.text == "5"
    # A history that some servers could not read back is made readable, and stays as it is then.
    sent_arguments = bodies[1]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert msgspec.json.decode(sent_arguments) == {"malformed": '{"a": 2,'}
    for before, after in pairwise(bodies):
        assert after["messages"][: len(before["messages"])] == before["messages"]


@pytest.mark.parametrize("refuses", [False, True])
def test_the_last_answer_is_asked_for_with_the_same_tools_and_none_callable(refuses: bool) -> None:
    def answers(request: EndpointRequest) -> Any:
        if request.body.get("tool_choice") == "none":
            return "So the answer is 7."
        return calling(("add", {"a": 1, "b": 1}), text="thinking")

    plan: dict[str, Any] = {"unsupported": ("tool_choice",)} if refuses else {}
    exchange, bodies = solve(answers, agent={"max_iterations": 3}, **plan)
    if refuses:
        assert (stop_of(exchange), exchange.reply.finish) == ("max_iterations", "length")
        assert exchange.reply.text == "thinking"
        assert exchange.reply.error is None
    else:
        assert (stop_of(exchange), exchange.reply.text) == (
            "max_iterations_forced",
            "So the answer is 7.",
        )
        assert bodies[-1]["tools"] == bodies[0]["tools"]
    assert len(bodies) == (3 if refuses else 4)


def test_a_submitted_answer_ends_the_episode() -> None:
    def submit(answer: str) -> ToolResult:
        return ToolResult("thank you", final=answer)

    exchange, bodies = solve(lambda _: calling(("submit", {"answer": "42"})), {"submit": submit})
    assert (exchange.reply.text, exchange.reply.finish) == ("42", "stop")
    assert (stop_of(exchange), len(bodies)) == ("submitted", 1)


def test_faults_in_the_middle_are_repeated_and_never_restart_the_episode() -> None:
    calls: list[int] = []

    def count(n: int) -> str:
        calls.append(n)
        return str(n)

    def answers(request: EndpointRequest) -> Any:
        finished_calls = len(results_in(request))
        return calling(("count", {"n": finished_calls})) if finished_calls < 7 else "done"

    exchange, _ = solve(answers, {"count": count}, first_faults=("429", "drop", "malformed", "503"))
    assert exchange.reply.text == "done"
    assert calls == [0, 1, 2, 3, 4, 5, 6]
    assert [f.kind for f in exchange.faults[:4]] == [
        "rate_limit", "connection", "malformed", "server"
    ]  # fmt: skip
    assert len(exchange.faults) == 4 * 8
    assert exchange.reply.requests == 8


def test_an_endpoint_that_gives_up_in_the_middle_makes_an_error() -> None:
    def broken(request: EndpointRequest, attempt: int) -> Raw | None:
        body = b"HTTP/1.1 500 E\r\nContent-Length: 0\r\n\r\n"
        return Raw(data=body, then="keep") if results_in(request) else None

    exchange, _ = solve(sums, raw=broken, attempts=2)
    assert exchange.reply.error is not None
    assert exchange.reply.error.kind == "server"
    assert stop_of(exchange) == "provider_error"
    assert len(turns_of(exchange)) == 2


def test_a_full_context_ends_the_episode_without_an_error() -> None:
    def full(request: EndpointRequest, attempt: int) -> Raw | None:
        body = b'{"error": {"message": "context", "code": "context_length_exceeded"}}'
        head = b"HTTP/1.1 400 E\r\nContent-Length: %d\r\n\r\n" % len(body)
        return Raw(data=head + body, then="keep") if results_in(request) else None

    exchange, _ = solve(sums, raw=full)
    assert stop_of(exchange) == "context_overflow"
    assert (exchange.reply.error, exchange.reply.finish) == (None, "length")


def test_tools_that_break_down_make_an_error_of_their_own_kind() -> None:
    def crash() -> str:
        raise ToolsLost("server_lost", "the server died")

    def bug() -> str:
        raise RuntimeError("token=SECRET")

    for name, message in (("crash", "the server died"), ("bug", "RuntimeError")):
        call = calling((name, {}))
        exchange, _ = solve(partial(_always, call), {"crash": crash, "bug": bug})
        fault = exchange.reply.error
        assert fault is not None
        assert fault.kind == "tools"
        assert message in fault.message
        assert "SECRET" not in fault.message
        assert stop_of(exchange) == "server_lost"


@pytest.mark.parametrize(
    ("agent", "stop"),
    [
        ({"max_tokens": 1}, "budget"),
        ({"max_cost": 0.000001}, "budget"),
        ({"timeout_seconds": 2.0}, "timeout"),
    ],
)
def test_limits_end_an_episode(agent: dict[str, Any], stop: str) -> None:
    async def slow() -> str:
        await asyncio.sleep(600 if stop == "timeout" else 0)
        return "x"

    def answers(request: EndpointRequest) -> Any:
        return calling(("slow", {}))

    price = Price(input=1000, output=1000)
    exchange, bodies = solve(answers, {"slow": slow}, agent, price=price)
    assert (stop_of(exchange), len(bodies), exchange.reply.finish) == (stop, 1, "length")
    kinds = [turn.kind for turn in turns_of(exchange)[1:]]
    assert kinds == (["timeout"] if stop == "timeout" else []), "no call after the limit"


@pytest.mark.parametrize(
    ("agent", "expected_turns"),
    [({"max_tokens": 250}, 2), ({"max_tokens": 300}, 3), ({"max_cost": 0.25}, 2)],
)
def test_limits_of_an_episode_are_not_exceeded_by_another_turn(
    agent: dict[str, Any], expected_turns: int
) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 10}
    call = partial(_always, calling(("add", {"a": 1, "b": 1})))
    exchange, bodies = solve(call, agent=agent, price=Price(input=1000, output=1000), usage=usage)
    assert (stop_of(exchange), len(bodies)) == ("budget", expected_turns)


def test_limits_that_nobody_can_keep_stop_the_run() -> None:
    call = partial(_always, calling(("add", {"a": 1, "b": 1})))
    with pytest.raises(EndpointError, match="does not say how many tokens"):
        solve(call, agent={"max_tokens": 250}, usage={})


def test_a_model_that_does_not_answer_in_time_ends_the_episode() -> None:
    exchange, _ = solve(sums, agent={"timeout_seconds": 0.2}, latency=4.0)
    assert stop_of(exchange) == "timeout"
    assert exchange.reply.error is None
    assert exchange.reply.seconds < 4


def test_notes_follow_the_results_and_older_ones_can_be_hidden() -> None:
    states = iter(range(9))
    for hidden in (False, True):
        source = Functions({"add": add}, note=lambda: f"state {next(states)}")

        def answers(request: EndpointRequest) -> Any:
            return "5" if len(results_in(request)) == 2 else calling(("add", {"a": 1, "b": 1}))

        exchange, bodies = solve(answers, source=source, agent={"hide_old_env_states": hidden})
        shown_notes = [m["content"] for m in bodies[-1]["messages"] if m["role"] == "user"][1:]
        assert len(shown_notes) == (1 if hidden else 2)
        assert shown_notes[-1].startswith("state")
        stored_notes = [turn.text for turn in turns_of(exchange) if turn.role == "user"]
        assert len(stored_notes) == 2


def test_long_results_are_cut_and_the_model_is_told() -> None:
    exchange, bodies = solve(
        lambda request: "x" if results_in(request) else calling(("flood", {})),
        {"flood": lambda: "y" * 5000},
        {"max_result_chars": 100},
    )
    text = results_in(EndpointRequest("chat", bodies[-1], ""))[0]
    assert text.startswith("y" * 100 + "\n[cut here: 4900 of 5000")
    assert turns_of(exchange)[1].text == text


def test_a_transcript_that_no_context_holds_ends() -> None:
    exchange, bodies = solve(
        lambda _: calling(*[("flood", {})] * 20),
        {"flood": lambda: "y" * 500_000},
        {"max_result_chars": 500_000},
    )
    assert stop_of(exchange) == "context_overflow"
    assert len(bodies) == 1


def test_pictures_come_after_the_results_of_their_turn() -> None:
    def draw() -> ToolResult:
        return ToolResult("drawn", images=(b"\x89PNG1",))

    exchange, bodies = solve(
        lambda request: "x" if results_in(request) else calling(("draw", {}), ("draw", {})),
        {"draw": draw},
    )
    *_, first_result, second_result, pictures = bodies[-1]["messages"]
    assert (first_result["role"], second_result["role"], pictures["role"]) == (
        "tool",
        "tool",
        "user",
    )
    assert [part["type"] for part in pictures["content"]] == ["image_url", "image_url"]
    assert not any(turn.images for turn in turns_of(exchange))


def test_the_text_protocol() -> None:
    def answers(request: EndpointRequest) -> Any:
        messages = request.body["messages"]
        assert "tools" not in request.body
        assert [m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2) + [
            "user"
        ]
        if len(messages) == 1:
            assert messages[0]["content"].startswith("What is 2+3?\n\nYou may use these tools")
            call = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
            return f'I add.\n{call}\n<tool_result id="call_1">made up</tool_result>'
        if len(messages) == 3:
            assert "made up" not in messages[1]["content"]
            assert messages[2]["content"] == '<tool_result id="call_1">5</tool_result>'
            return '<tool_call>{"name": "add", "arg'
        return "So the answer is 5."

    exchange, bodies = solve(answers, agent={"protocol": "text"})
    assert exchange.reply.text == "So the answer is 5."
    assert len(bodies) == 3
    kinds = [turn.kind for turn in turns_of(exchange) if turn.role == "tool"]
    assert kinds == ["ok", "bad_arguments"]


CALL = '{"name": "add", "arguments": {"a": 2, "b": 3}}'
TWO = f"[{CALL}, {CALL}]"
RAW = '{"name": "add", "arguments": {"a": 2, "b": 3, "why": "one\nor two"}}'
BROKEN = '{"name": "add", "arguments": {"a": 2, "b": 3}'


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"I add.\n```json\n{CALL}\n```", ["add"]),
        (f"```\n{CALL}\n```\nThen I go on.", ["add"]),
        (f"```tool_call\n{CALL}", ["add"]),
        (f"  ```json {CALL} ```", ["add"]),
        (f"```json\n{CALL}\n```\nand\n```json\n{CALL}\n```", ["add", "add"]),
        (f"```json\n{TWO}\n```", ["add", "add"]),
        (f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>", ["add"]),
        (f"```\n<tool_call>{CALL}</tool_call>\n```", ["add"]),
        (CALL, ["add"]),
        (f"```json\n{RAW}\n```", ["add"]),
        ('<tool_call>{"name": "add"}</tool_call>', ["add"]),
        (CALL.replace("arguments", "parameters"), ["add"]),
        ('```json\n{"name": "say", "arguments": {"text": "```\\n</tool_call>"}}\n```', ["say"]),
        (f"```json\n{BROKEN}\n```", [""]),
        (f"<tool_call>{BROKEN}</tool_call>", [""]),
        ('<tool_call>{"name": "\\ud800"}</tool_call>', [""]),
        ('```json\n{"name": "Ada", "age": 36}\n```', []),
        ('```json\n{"answer": 5}\n```\nThe answer is 5.', []),
        ("```python\nadd(2, 3)\n```\nSo 5.", []),
        ("[1, 2] is sorted.", []),
        (f"The call was {CALL}.", []),
        ("[" * 100_000, []),
    ],
)
def test_calls_in_text_are_seen_as_models_write_them(text: str, names: list[str]) -> None:
    calls = parse_calls(text)
    assert [call.name for call in calls] == names
    assert [call.id for call in calls] == [f"call_{n + 1}" for n in range(len(names))]


@pytest.mark.parametrize("fence", ["```json", "```"])
def test_a_call_in_a_fence_is_carried_out(fence: str) -> None:
    def answers(request: EndpointRequest) -> Any:
        last_message = request.body["messages"][-1]["content"]
        if "<tool_result" not in last_message:
            return f"I add the numbers.\n\n{fence}\n{CALL}\n```"
        return f"So the answer is {last_message.partition('>')[2].partition('<')[0]}."

    exchange, _ = solve(answers, agent={"protocol": "text"})
    assert (exchange.reply.text, stop_of(exchange)) == ("So the answer is 5.", "final")


def test_the_text_protocol_asks_for_the_last_answer() -> None:
    call = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'

    def answers(request: EndpointRequest) -> Any:
        last_message = request.body["messages"][-1]["content"]
        return "5" if "You cannot call tools any more" in last_message else call

    exchange, bodies = solve(answers, agent={"protocol": "text", "max_iterations": 2})
    assert (exchange.reply.text, stop_of(exchange)) == ("5", "max_iterations_forced")
    assert [m["role"] for m in bodies[-1]["messages"]] == ["user", "assistant"] * 2 + ["user"]


def preflight(functions: Mapping[str, Any], agent: dict[str, Any], plan: Plan) -> ToolLoop:
    loop = ToolLoop(Functions(functions), AgentLimits(**agent))

    async def scenario(url: str) -> None:
        limits = ChannelLimits(concurrency=1, timeout=5, attempts=1, give_up_after=5)
        channel = Channel(OpenAIModel("m", api_url=url), limits)
        try:
            await loop.open()
            await loop.preflight(channel, Sampling())
        finally:
            await channel.close()

    with FaultyEndpoint(plan) as endpoint:
        asyncio.run(scenario(endpoint.url))
    return loop


def test_an_endpoint_that_refuses_tools_is_found_before_the_first_question() -> None:
    with pytest.raises(EndpointError, match=r"agent\.protocol"):
        preflight({"add": add}, {}, Plan(unsupported=("tools",)))
    preflight({"add": add}, {"protocol": "text"}, Plan(unsupported=("tools",)))
    with pytest.raises(ConfigError, match="offer no tools"):
        preflight({}, {}, Plan())


def test_the_tokens_of_the_definitions_are_measured_or_estimated() -> None:
    loop = preflight({"add": add}, {}, Plan())
    assert [notice.code for notice in loop.notices] == ["tools_take_no_tokens"]
    facts = loop.facts()
    assert facts["tools"] == ["add"]
    assert facts["schema_tokens_from"] == "estimate"
    assert facts["sources"] == {"kind": "functions"}
    assert len(facts["tools_hash"]) == 16


def test_calls_that_the_last_reply_may_not_make_are_counted_as_broken_off() -> None:
    exchange, _ = solve(lambda _: calling(("add", {"a": 2, "b": 3})), agent={"max_iterations": 1})
    episode = exchange.reply.episode
    assert episode is not None
    assert episode.stop == "max_iterations_forced"
    assert [(call.tool, call.kind) for call in summarize_tool_use(episode).calls] == [
        ("add", "ok"),
        ("add", "broken_off"),
    ]


def test_sources_are_joined_and_their_names_differ() -> None:
    async def scenario() -> list[str]:
        combined = CombinedTools([Functions({"add": add}), Functions({"sub": lambda a, b: a - b})])
        await combined.open()
        async with combined.episode(SAMPLE, 0) as box:
            texts = [(await box.call(n, {"a": 5, "b": 3})).text for n in ("add", "sub")]
        await combined.close()
        return texts

    assert asyncio.run(scenario()) == ["8", "2"]
    with pytest.raises(ConfigError, match="called 'add'"):
        asyncio.run(CombinedTools([Functions({"add": add}), Functions({"add": add})]).open())
