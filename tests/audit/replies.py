"""Replies written for the audit: one for each way in which a reply is misread, and its cause.

A reply may use its question: ``{gold}`` is the label of the right option, ``{wrong}`` that of the
next one, ``{gold_text}`` and ``{wrong_text}`` what they say, ``{question}`` and ``{options}`` the
question and its options as shown, ``{shots}`` the worked examples with their answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Written(NamedTuple):
    """One reply."""

    exam: str
    """The exam and, where it matters, the subset: ``bbh/word_sorting``."""
    about: str
    """What goes wrong, where somebody is not careful."""
    cause: str
    reply: str | dict[str, Any]
    """Its text, or the whole choice that the endpoint sends."""


def finished(reason: str, **message: Any) -> dict[str, Any]:
    """A choice with a finish reason; the message's content is a text unless it is given."""
    content = {"role": "assistant", "content": None} | message
    return {"index": 0, "message": content, "finish_reason": reason}


THINKING = "Let me see. The sum is plain, and so the option is too. "
LOOP = "The number is not among the options, so I check the sum once more. "

WRITTEN = (
    # --- what came back ---
    Written("bbh", "cut off before the answer", "cut_off", finished("length", content=THINKING)),
    Written(
        "mmlu_pro",
        "a budget of tokens that is far too small",
        "cut_off",
        finished("length", content="Step 1: I write down what is given. Step 2: A value is cho"),
    ),
    Written("mmlu_pro", "no content and no end", "empty_cut", finished("length")),
    Written("bbh", "no content at all", "empty", finished("stop")),
    Written(
        "mmlu_pro",
        "a refusal of the endpoint, copied into the text",
        "refuses",
        finished("stop", refusal="I cannot help with that."),
    ),
    Written("bixbench", "a refusal in words", "refuses", "As an AI I am not able to answer this."),
    Written(
        "ceval",
        "a refusal in Chinese",
        "refuses",
        "抱歉，我无法回答这个问题。作为人工智能，我不便讨论。",
    ),
    Written(
        "bbh", "a server that gave up", "broken_by_server", finished("abort", content="So the")
    ),
    Written(
        "mmlu_pro",
        "a router that calls its failure a finish reason",
        "broken_by_server",
        finished("error", content="The answer is A"),
    ),
    Written(
        "mmlu_pro",
        "the body of an error as the answer",
        "error_as_text",
        "Error code: 400 - {{'error': {{'message': 'maximum context length exceeded'}}}}",
    ),
    Written("bbh", "a client's stand-in for a failed request", "error_as_text", "No response"),
    Written(
        "mmlu_pro",
        "thoughts that never end",
        "thinking_never_ended",
        finished(
            "length", content="<think>B is wrong, so ANSWER: {gold} is likely, but let me see"
        ),
    ),
    Written(
        "bbh",
        "thoughts in unusual tags that never end",
        "thinking_never_ended",
        "<reasoning>So the answer is ({gold}), unless I misread",
    ),
    Written(
        "mmlu_pro",
        "the answer stands in the thoughts alone",
        "answer_in_reasoning",
        "<think>The sum gives it. ANSWER: {gold}</think>I have thought about it with care.",
    ),
    Written(
        "bbh",
        "nothing but thoughts",
        "reasoning_only",
        finished("stop", reasoning_content="I add the numbers. So the answer is ({gold})."),
    ),
    Written(
        "mmlu_pro", "a loop that takes seconds to read", "loops", THINKING + LOOP * 40 + LOOP[:20]
    ),
    Written(
        "mmlu_pro",
        "only the beginning of the reply was kept",
        "breaks_off",
        "First I look at what is given, and then at what is asked. The question names a number, and"
        " it wants me to find the value that goes with it. There are several of them, and most are"
        " too small or too large to be meant. I begin with the smallest. It does not fit, since it"
        " lies below the number that is named. The next one is near, but the sum is not quite what"
        " it should be. I go on to the one after that, whose sum is right as far as I can see, so"
        " that nothing but the form of the rep",
    ),
    Written(
        "bixbench-open", "other words than the target's", "left_to_judge", "the first of the genes"
    ),
    Written(
        "bbh-mcpbr", "a stop string cut the answer", "stop_string", "It is plain. So the answer is"
    ),
    Written(
        "mmlu_pro",
        "a call of a tool that nobody offered",
        "tool_call_only",
        finished(
            "tool_calls",
            tool_calls=[
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        ),
    ),
    # --- echoes, replays, run-on ---
    Written("mmlu_pro", "the options again and nothing else", "echoed_options", "{options}"),
    Written("bbh", "the options again and nothing else", "echoed_options", "{options}"),
    Written("ceval", "the options again and nothing else", "echoed_options", "{options}"),
    Written(
        "bbh",
        "the worked examples are answered again, then the question",
        "replayed_examples",
        "{shots}\nThat leaves mine. So the answer is ({gold}).",
    ),
    Written(
        "bbh",
        "the answer, then an imagined next task",
        "runs_on",
        "So the answer is ({gold}).\n\nQ: Which number is 7 plus 2?\nOptions:\n(A) the number 7\n"
        "(B) the number 9\nA: Let's think step by step. So the answer is (B).\n\nQ: Is 8 even?\n"
        "A: So the answer is ({wrong}).",
    ),
    Written(
        "mmlu_pro",
        "the answer, then a list of other tasks' answers",
        "order_decides",
        "ANSWER: {gold}\n\nThe following tasks are like it, and their results stand here for all"
        " who want to compare them with their own.\n\nANSWER: {wrong}",
    ),
    Written(
        "bbh",
        "the question again after a preamble, then the answer",
        "restated_question",
        "Sure! Here is the solution.\n\nQuestion: {question}\n\nIt is the sum.\n\n"
        "The answer: ({gold})",
    ),
    Written(
        "mmlu_pro",
        "tokens of a chat template",
        "template_tokens",
        "ANSWER: {gold}<|im_end|>\n<|im_start|>user\nAnother one, please. ANSWER: {wrong}",
    ),
    # --- several answers, none, others ---
    Written("mmlu_pro", "two answers side by side", "several_answers", "ANSWER: {gold} or {wrong}"),
    Written("bixbench", "an answer and a doubt", "hedged", "{gold}, but I'm not sure."),
    Written(
        "mmlu_pro", "an answer that is denied", "denied", "I do not think the answer is {wrong}."
    ),
    Written("mmlu_pro", "a letter outside the options", "outside_options", "ANSWER: Z"),
    Written(
        "mmlu_pro",
        "a first answer that is taken back",
        "two_answers",
        "The answer is {wrong}.\n\nWait, I made a mistake: I forgot to carry. The answer is {gold}.",
    ),
    Written(
        "mmlu_pro",
        "no option is said to be right",
        "no_option_fits",
        "The sum is another one, so none of the given options is right.",
    ),
    Written("mmlu_pro", "the form as the prompt shows it", "placeholder", "ANSWER: [LETTER]"),
    Written(
        "quiz",
        "a number close to an option, compared by its letters",
        "value_no_option",
        "It comes to 10.5",
    ),
    Written("sums", "it says that it does not know", "does_not_know", "I do not know."),
    Written("quiz", "the place in place of the label", "place_for_label", "Answer: the second one"),
    # --- letters that are no labels ---
    Written("bbh", "the pronoun of the first line", "letter_of_prose", "I think that it is plain."),
    Written("mmlu_pro", "the last capital of a word", "letter_of_word", "It is found in the DNA."),
    Written(
        "mmlu_pro",
        "the pronoun at the end",
        "letter_of_prose",
        "It is plain to see. I hope it helps!",
    ),
    Written("bixbench", "the first letter of a word", "no_answer", "Because the set has labels."),
    Written("ceval", "the first letter of a word", "letter_of_word", "Let's see what is asked."),
    Written(
        "mmlu_pro",
        "a name after the marker",
        "letter_of_word",
        "The answer is Bernoulli's theorem.",
    ),
    # --- the form of the answer ---
    Written("mmlu_pro", "a small letter", "lower_case", "ANSWER: {gold_small}"),
    Written("ceval", "a small letter", "lower_case", "答案：{gold_small}"),
    Written("ceval", "a letter in full width", "full_width", "答案：{gold_wide}"),
    Written("bbh", "bold", "bold", "So the answer is **({gold})**."),
    Written("mmlu_pro", "bold, which Inspect did not read", "bold", "**ANSWER: **{gold}"),
    Written("bbh", "in quotes", "quoted", 'So the answer is "({gold})".'),
    Written("bbh", "in a box", "boxed", "So the answer is $\\boxed{{({gold})}}$."),
    Written("bbh", "on the next line", "next_line", "So the answer is \n({gold})."),
    Written("bbh", "after a blank line", "next_line", "So the answer is \n\n({gold})."),
    Written("bbh", "the marker in small letters", "other_marker", "so the answer is ({gold})."),
    Written("bbh", "a comma in the marker", "other_marker", "So, the answer is ({gold})."),
    Written("bbh", "a colon after the marker", "other_marker", "So the answer is: ({gold})."),
    Written("bbh", "the marker of another exam", "other_marker", "Final answer: ({gold})"),
    Written("mmlu_pro", "the marker of another language", "other_language", "答案是{gold}。很清楚"),
    Written("bbh", "a field of JSON", "as_json", '{{"answer": "({gold})"}}'),
    Written("bixbench-official", "no tags", "other_marker", "The answer is {gold}."),
    Written("bixbench-official", "a tag that is not closed", "open_tag", "<answer>{gold}"),
    Written(
        "bbh-mcpbr",
        "a sentence where a bare line is asked for",
        "in_sentence",
        "So the answer is ({gold}).",
    ),
    Written(
        "bbh/word_sorting",
        "commas between the words",
        "other_spelling",
        "So the answer is {gold_commas}.",
    ),
    Written(
        "bbh/web_of_lies",
        "a reason after the answer",
        "more_than_answer",
        "So the answer is {gold}, since a number that two divides is called even, and no other.",
    ),
    Written("sums", "the sign of worked solutions", "after_hashes", "6 + 3 = 9\n#### {gold}"),
    Written(
        "bbh/object_counting",
        "a number that ends like the right one",
        "part_of_number",
        "So the answer is 1{gold}.",
    ),
    Written(
        "bbh/multistep_arithmetic_two",
        "another sign",
        "part_of_number",
        "So the answer is {gold_negated}.",
    ),
    # --- answers in plain words ---
    Written("mmlu_pro", "the text of the option alone", "option_text", "ANSWER: {gold_text}"),
    Written(
        "mmlu_pro",
        "label, then text",
        "plain_statement",
        "After the sum we get ({gold}) {gold_text}.",
    ),
    Written("mmlu_pro", "text, then label", "plain_statement", "It must be {gold_text} ({gold})."),
    Written(
        "mmlu_pro",
        "the closest option",
        "plain_statement",
        "The closest option is {gold}. Nothing else is near.",
    ),
    Written(
        "mmlu_pro",
        "called the correct one",
        "plain_statement",
        "Option {gold} is the correct one. That is easy.",
    ),
    Written(
        "mmlu_pro",
        "a choice in plain words",
        "plain_statement",
        "I'd go with {gold} here. It fits.",
    ),
    Written(
        "mmlu_pro",
        "a list of verdicts",
        "plain_statement",
        "- {wrong}: incorrect, too large\n- {gold}: correct, as the sum says\nThe others are too small as Tom says.",
    ),
    Written("mmlu_pro", "an arrow", "plain_statement", "The sum is done → {gold}\n"),
    Written(
        "mmlu_pro",
        "a leading label, then prose",
        "plain_statement",
        "{gold}. {gold_text}\n\nThis is what the sum gives. No other value fits, as Tom would say.",
    ),
    Written(
        "ceval",
        "elimination in Chinese",
        "plain_statement",
        "其他选项都不符合题意，只剩{gold}，选{gold}。",
    ),
    Written("ceval", "verdicts in Chinese", "plain_statement", "{gold}正确，{wrong}错误。"),
    Written(
        "ceval", "text and label in Chinese", "plain_statement", "应该是{gold_text}（{gold}）。"
    ),
)
