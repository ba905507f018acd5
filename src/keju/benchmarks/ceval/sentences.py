"""Messages about C-Eval in English and Chinese."""

from __future__ import annotations

from keju import messages
from keju.benchmarks.ceval.facts import SUBJECTS

ENGLISH = {
    "about_exam_ceval": "52 subjects of Chinese examinations, four options (val 1,346, test "
    "12,342 questions)",
    "ceval.submission_unasked": "the run answered {answered} of {n} questions (first one "
    "missing: {first}); resume it, or ask for a partial submission",
    "ceval.submission_subjects": "a submission needs all {n} subjects: '{name}' has {found} of "
    "{test} test rows",
    "ceval.fill": "fill '{fill}' is not one of A, B, C, D",
    "ceval.answer": "{where}: answer '{answer}' is not one of A, B, C, D",
    "ceval.empty_question": "{where}: the question is empty",
    "ceval.id_not_whole": "{where}: id '{id}' is not a whole number",
    "ceval.no_value": "{where}: no value for column {names}",
    "ceval.no_rows": "{origin} holds no rows",
    "ceval.id_twice": "{where}: id {index} occurs twice",
    "ceval.missing": "C-Eval: {missing} is missing; restore it, or leave '{subject}' out of "
    "subset_list",
    "ceval.system_role": "system_role has no effect: there is no system message in protocol "
    "'{protocol}' unless system_prompt gives one; leave it out",
    "ceval.system_role_base": "system_role has no effect in form 'base': leave it out",
    "ceval.dev": "split 'dev' holds the worked examples and is not asked: val or test",
    "ceval.subject_differs": "{origin}: {field} of '{name}' is {value}, published {published}",
    "ceval.unknown_subject": "{origin} names an unknown subject '{name}'{hint}",
    "ceval.no_mapping": "{origin} is not a mapping of subjects; take it from the C-Eval release",
    "ceval.not_offered": "{axis} '{asked}' is not offered by protocol '{protocol}': leave it "
    "out, or take protocol {names}",
    "ceval.labels_cot": "decode 'labels' needs mode 'answer-only': a chain of thought is generated",
    "ceval.about_reader_tutorial": "the C-Eval tutorial: the letter of the last '答案：X'",
    "ceval.about_reader_official": "the scripts of hkust-nlp/ceval: the last '答案是X。' of a "
    "chain of thought, else the letter that the reply begins with or is",
    "ceval.about_reader_first_capital": "OpenCompass: the first capital letter of the reply",
}
CHINESE = {
    "about_exam_ceval": "52 门科目的中文考试，四个选项（val 1,346 题，test 12,342 题）",
    "ceval.submission_unasked": "这次运行回答了 {n} 道题中的 {answered} 道（第一道缺少的："
    "{first}）；请继续运行，或要求部分提交",
    "ceval.submission_subjects": "提交需要全部 {n} 个科目：“{name}”有 {found} / {test} 道 test 题",
    "ceval.fill": "fill “{fill}”不是 A、B、C、D 之一",
    "ceval.answer": "{where}：答案“{answer}”不是 A、B、C、D 之一",
    "ceval.empty_question": "{where}：题目为空",
    "ceval.id_not_whole": "{where}：id “{id}”不是整数",
    "ceval.no_value": "{where}：列 {names} 没有值",
    "ceval.no_rows": "{origin} 中没有行",
    "ceval.id_twice": "{where}：id {index} 出现两次",
    "ceval.missing": "C-Eval：缺少 {missing}；请恢复它，或把“{subject}”从 subset_list 中去掉",
    "ceval.system_role": "system_role 不起作用：除非由 system_prompt 给出，协议“{protocol}”没有"
    "系统消息；请去掉它",
    "ceval.system_role_base": "system_role 在 form“base”下不起作用：请去掉它",
    "ceval.dev": "split“dev”是示例，不会被提问：用 val 或 test",
    "ceval.subject_differs": "{origin}：“{name}”的 {field} 是 {value}，发布的是 {published}",
    "ceval.unknown_subject": "{origin} 含有未知的科目“{name}”{hint}",
    "ceval.no_mapping": "{origin} 不是科目的映射；请从 C-Eval 的发布中取用",
    "ceval.not_offered": "协议“{protocol}”不提供 {axis} “{asked}”：去掉它，或使用协议 {names}",
    "ceval.labels_cot": "decode“labels”需要 mode“answer-only”：思维链是生成出来的",
    "ceval.about_reader_tutorial": "C-Eval 教程：最后一个“答案：X”的字母",
    "ceval.about_reader_official": "hkust-nlp/ceval 的脚本：思维链取最后一个“答案是X。”，否则取回复"
    "开头的字母，或整个回复就是的字母",
    "ceval.about_reader_first_capital": "OpenCompass：回复中第一个大写字母",
}
DESCRIBED = {
    "protocol.ceval.evalscope": "EvalScope，C-Eval v1.1：一条消息，示例带解析；要求写“答案：X”",
    "protocol.ceval.tutorial": "C-Eval 教程：按标签的 logits 直接作答，或思维链；其页面首先报告"
    "的是带示例的直接作答；mode、form 和 few_shot_num 在它的八种提示词中选择",
    "protocol.ceval.official": "hkust-nlp/ceval 的脚本，科目用中文名；mode 和 form 在它们的提示词中"
    "选择",
    "protocol.ceval.lm-eval": "lm-evaluation-harness 的 ceval-valid v2：不用示例的续写，取最可能的"
    "标签，微平均",
    "protocol.ceval.opencompass": "OpenCompass：每个示例都带开头；chat 读第一个大写字母；base 取"
    "最可能的标签（原版：整段文本的平均交叉熵）",
}
"""Chinese for what the exam declares in English."""
CATEGORIES = {
    "STEM": "理工",
    "Social Science": "社会科学",
    "Humanities": "人文科学",
    "Other": "其他",
}
messages.add("en", ENGLISH)
messages.add("zh", CHINESE)
messages.add_help(DESCRIBED)
messages.add_help(
    {
        f"subset.ceval.{subject.name}": f"{subject.chinese}（{CATEGORIES[subject.category]}）"
        for subject in SUBJECTS.values()
    }
)
