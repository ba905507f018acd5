"""Tokens as the tokenizer would write the whole text, whatever is shared."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keju.errors import ConfigError
from keju.models.hf.encode import EncodedRequest, RequestEncoder, last_line
from keju.models.hf.load import make_checkpoint
from keju.models.hf.settings import HFSettings
from keju.models.labels import common_length
from keju.types import Fault, Prefix, Prompt, Request, Sampling
from tests.hf.tiny import CHAT, CHAT_SHOTS, CORPUS, LABELS, TEXT, Tiny, build_tokenizer

pytestmark = pytest.mark.slow

ENDINGS = st.text("ABCD 答案：:;\n()ab", max_size=12)


def encoder(
    tiny: Tiny, *, space: bool = False, template: str | None = None, **settings: Any
) -> RequestEncoder:
    chosen = HFSettings(**settings)
    checkpoint = make_checkpoint(tiny.net, tiny.tokenizer, chosen, (torch.device("cpu"),))
    return RequestEncoder(checkpoint, label_space=space)


def only_request(encoded: list[EncodedRequest | Fault]) -> EncodedRequest:
    (item,) = encoded
    assert isinstance(item, EncodedRequest), item
    return item


def outcome(encoded: EncodedRequest | Fault) -> Any:
    return (encoded.tokens, encoded.labels) if isinstance(encoded, EncodedRequest) else encoded


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lead=ENDINGS, tail=st.text("ABCD 答案：:;\n()ab", min_size=1, max_size=12))
def test_shared_tokens_are_those_of_the_whole_text(tiny: Tiny, lead: str, tail: str) -> None:
    prefix = Prefix(lead=CORPUS[1] + lead)
    item = only_request(encoder(tiny).encode([Request(Prompt(prefix, tail), TEXT, "h")]))
    assert item.tokens == tiny.tokenizer(prefix.lead + tail)["input_ids"]
    alone = tiny.tokenizer(prefix.lead)["input_ids"]
    assert item.tokens[: item.shared] == alone[: item.shared]
    assert 0 < item.shared < len(item.tokens)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(ending=ENDINGS)
def test_label_ids_follow_the_prompt_as_it_is_written(tiny: Tiny, ending: str) -> None:
    text = "which?\nanswer" + ending
    request = Request(Prompt(Prefix(), text), LABELS, "h", "ABCD")
    (encoded,) = encoder(tiny).encode([request])
    if isinstance(encoded, Fault):
        assert encoded.kind == "bad_request"
        assert "decode 'generate'" in encoded.message
        return
    tokens = tiny.tokenizer(text)["input_ids"]
    written = {label: tiny.tokenizer(text + label)["input_ids"] for label in "ABCD"}
    if len({common_length(tokens, ids) for ids in written.values()}) > 1:
        assert encoded.tokens == tokens
        assert tiny.tokenizer.decode([ids for (ids,) in encoded.labels.values()]) == "ABCD"
        return
    for label, (spelling,) in encoded.labels.items():
        assert written[label][: len(encoded.tokens) + 1] == [*encoded.tokens, spelling]


def test_a_label_that_merges_with_the_cue_replaces_its_last_token(tiny: Tiny) -> None:
    text = "x\nanswer;"
    tokens = tiny.tokenizer(text)["input_ids"]
    merged = tiny.tokenizer(text + "A")["input_ids"]
    assert merged[: len(tokens)] != tokens, "the tokenizer of the test must merge here"
    item = only_request(
        encoder(tiny).encode([Request(Prompt(Prefix(), text), LABELS, "h", "ABCD")])
    )
    assert len(item.tokens) < len(tokens)
    assert [*item.tokens, item.labels["A"][0]] == merged


def test_the_label_ids_of_a_prompt_do_not_depend_on_what_was_asked_before(tiny: Tiny) -> None:
    breaks = ["\n\n"] * 500 + ["\nA", "\nB", "\nC", "\nD"] * 100
    tiny = Tiny(tiny.net, build_tokenizer(extra_texts=breaks))
    stems = ("x\nanswer", "x\nanswer;", "x\n\nanswer;", "答案：", "y\n答案：", "")
    texts = [stem + behind for stem in stems for behind in ("", " ", "\n", "\n\n", "\n" * 40)]
    requests = [Request(Prompt(Prefix(), f"which?{t}"), LABELS, "h", "ABCD") for t in texts]
    alone = [outcome(encoder(tiny).encode([request])[0]) for request in requests]
    assert [outcome(encoded) for encoded in encoder(tiny).encode(requests)] == alone
    assert [outcome(encoded) for encoded in encoder(tiny).encode(requests[::-1])] == alone[::-1]


def test_the_last_line_comes_with_the_breaks_around_it() -> None:
    assert last_line("a\nb:") == "\nb:"
    assert last_line("a \n\nb:\n\n") == " \n\nb:\n\n"
    assert last_line("b") == "b"
    assert last_line("\n\n") == "\n\n"
    assert last_line("") == ""


def test_the_spelling_with_a_space_counts_where_it_is_asked_for(tiny: Tiny) -> None:
    request = Request(Prompt(Prefix(), "question (x)\nanswer ="), LABELS, "h", "ABCD")
    single = only_request(encoder(tiny).encode([request])).labels
    both_spellings = only_request(encoder(tiny, space=True).encode([request])).labels
    assert all(len(ids) == 1 for ids in single.values())
    assert all(both_spellings[label][:1] == ids for label, ids in single.items())
    spaced = tiny.tokenizer("question (x)\nanswer = A")["input_ids"]
    item = only_request(encoder(tiny, space=True).encode([request]))
    assert spaced == [*item.tokens, *spaced[len(item.tokens) :]]
    assert both_spellings["A"] == (single["A"][0], spaced[len(item.tokens)])


def test_a_label_is_written_as_the_protocol_writes_it(tiny: Tiny) -> None:
    spaced = msgspec.structs.replace(LABELS, label_lead=" ")
    text = "question (x)\nanswer ="
    for space in (False, True):
        request = Request(Prompt(Prefix(), text), spaced, "h", "ABCD")
        item = only_request(encoder(tiny, space=space).encode([request]))
        for label, ids in item.labels.items():
            assert [*item.tokens, *ids] == tiny.tokenizer(f"{text} {label}")["input_ids"]


def test_chat_prompts_share_their_turns_and_end_with_the_cue(tiny: Tiny) -> None:
    prompt = Prompt(CHAT_SHOTS, "red or blue?", "Answer: ")
    item = only_request(encoder(tiny).encode([Request(prompt, CHAT, "h")]))
    text = tiny.tokenizer.decode(item.tokens)
    assert text == (
        "<|system|>Answer.<|end|><|user|>1 or 2?<|end|><|assistant|>A<|end|>"
        "<|user|>Q: red or blue?<|end|><|assistant|>Answer: "
    )
    assert tiny.tokenizer.decode(item.tokens[: item.shared]).startswith("<|system|>Answer.<|end|>")
    assert item.shared > 10


def test_a_prompt_longer_than_the_context_is_a_fault(tiny: Tiny) -> None:
    request = Request(Prompt(Prefix(), "word " * 300), TEXT, "h")
    (fault,) = encoder(tiny, max_length=64).encode([request])
    assert isinstance(fault, Fault)
    assert fault.kind == "context_length"
    assert "64" in fault.message


def test_a_template_that_refuses_is_a_fault_of_that_prompt(tiny: Tiny) -> None:
    template = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}x"
    requests = [
        Request(Prompt(CHAT_SHOTS, "?"), CHAT, "1"),
        Request(Prompt(Prefix(), "?"), CHAT, "2"),
    ]
    fault, item = encoder(tiny, chat_template=template).encode(requests)
    assert isinstance(fault, Fault)
    assert "no system" in fault.message
    assert isinstance(item, EncodedRequest)


def test_chat_without_a_template_is_refused_before_the_run(tiny: Tiny) -> None:
    bare = Tiny(tiny.net, build_tokenizer(template=None))
    with pytest.raises(ConfigError, match=r"no chat template.*model_args\.chat_template"):
        encoder(bare).check(CHAT)
    encoder(bare).check(TEXT)


def test_sampling_that_would_do_nothing_is_refused(tiny: Tiny) -> None:
    with pytest.raises(ConfigError, match="does not take 'presence_penalty'"):
        encoder(tiny).check(Sampling(form="completion", extra={"presence_penalty": 1.0}))
    encoder(tiny).check(Sampling(form="completion", extra={"top_k": 5, "min_p": 0.1}))


def test_an_added_end_mark_is_taken_off_a_text_to_continue(tiny: Tiny) -> None:
    from tokenizers.processors import TemplateProcessing

    closing = build_tokenizer()
    marks = [(name, closing.convert_tokens_to_ids(name)) for name in ("<|begin|>", "<|end|>")]
    closing.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|begin|> $A <|end|>", special_tokens=marks
    )
    assert closing("ab")["input_ids"][-1] == closing.eos_token_id
    item = only_request(
        encoder(Tiny(tiny.net, closing)).encode([Request(Prompt(Prefix(), "ab"), TEXT, "h")])
    )
    assert item.tokens == tiny.tokenizer("ab")["input_ids"]


def test_common_length() -> None:
    assert common_length([1, 2, 3], [1, 2, 4, 5]) == 2
    assert common_length([1, 2], [1, 2, 4]) == 2
    assert common_length([], [1]) == 0
