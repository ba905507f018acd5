"""Messages about MMLU-Pro in English and Chinese."""

from __future__ import annotations

from keju import messages

ENGLISH = {
    "about_exam_mmlu_pro": "12,032 multiple-choice questions with up to ten options, 14 categories",
    "mmlu_pro.field": "{where}: '{name}' should be {kind} and {fault}",
    "mmlu_pro.category": "{where}: unknown category '{category}'{hint}",
    "mmlu_pro.empty_question": "{where}: the question is empty",
    "mmlu_pro.empty_answer": "{where}: the answer is empty",
    "mmlu_pro.options": "{where}: 'options' holds something that is not text",
    "mmlu_pro.id_twice": "{where}, row {number}: question_id {question_id} occurs twice",
    "mmlu_pro.no_rows_of": "the recorded outputs hold no row of {names}",
    "mmlu_pro.about_reader_l1": "the authors' first rule: the letter of the first 'answer is (X)'",
    "mmlu_pro.about_reader_l2": "the authors' whole rule: l1, else the letter after 'Answer:', "
    "else the last capital A to J that stands alone",
}
CHINESE = {
    "about_exam_mmlu_pro": "12,032 道选择题，最多十个选项，14 个类别",
    "mmlu_pro.field": "{where}：“{name}”应当是 {kind}，但 {fault}",
    "mmlu_pro.category": "{where}：未知的类别“{category}”{hint}",
    "mmlu_pro.empty_question": "{where}：题目为空",
    "mmlu_pro.empty_answer": "{where}：答案为空",
    "mmlu_pro.options": "{where}：“options”中有不是文本的内容",
    "mmlu_pro.id_twice": "{where} 第 {number} 行：question_id {question_id} 出现两次",
    "mmlu_pro.no_rows_of": "记录的输出中没有 {names} 的行",
    "mmlu_pro.about_reader_l1": "作者的第一条规则：第一个“answer is (X)”的字母",
    "mmlu_pro.about_reader_l2": "作者的全部规则：先用 l1，没有则取“Answer:”之后的字母，再没有则取"
    "最后一个单独的大写字母 A 到 J",
}
DESCRIBED = {
    "protocol.mmlu_pro.evalscope": "EvalScope 1.14：0 到 5 个示例（默认 5 个），一条消息，要求写 "
    "'ANSWER: X'",
    "protocol.mmlu_pro.official": "作者用于本地模型的脚本：5 个示例，一段待续写的文本",
    "protocol.mmlu_pro.official-api": "作者用于 API 的脚本：5 个示例，一条消息，忽略 '**'",
}
"""Chinese for what the exam declares in English."""
messages.add("en", ENGLISH)
messages.add("zh", CHINESE)
messages.add_help(DESCRIBED)
