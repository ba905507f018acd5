"""Messages about BBH in English and Chinese."""

from __future__ import annotations

from keju import messages

ENGLISH = {
    "about_exam_bbh": "BIG-Bench Hard: 27 subsets (23 tasks) of reasoning questions, 6,511 rows",
    "bbh_subset_left_out": "Failed to load BBH subtask {subset}, which is left out: {problem}",
    "bbh_fresh": "fresh questions that Keju drew from seed {seed} at difficulty {difficulty}, not "
    "the published ones: the score is not one on BBH",
    "bbh.fresh_language": "bbh: the fresh questions of {path} are in the language '{lang}', which "
    "BBH's prompts and readers do not know: sit them with fresh_bbh, as README.md there says",
    "bbh.empty_prompt": "{path}: the prompt for '{name}' is empty",
    "bbh.no_prompt": "{path} has no prompt for '{name}'",
    "bbh.prompts_no_texts": "{path} is no object of texts: {problem}",
    "bbh.no_answer_only": "bbh: protocol answer-only needs answer_only_prompts.json, a JSON "
    "object of subset to prompt text, in {path}",
    "bbh.nothing_after_dashes": "{path}: nothing after '{dashes}', so there are no worked "
    "examples (few_shot_num 0 does without)",
    "bbh.no_dashes": "{path}: no line '{dashes}' after the canary",
    "bbh.no_shots": "bbh: no worked examples for '{name}': {path} has no cot-prompts/{name}.txt "
    "(few_shot_num 0 does without)",
    "bbh.target_no_answer": "{where}: the target '{target}' is no answer of {subset}",
    "bbh.target_not_option": "{where}: the target '{target}' is not one of its options ({options})",
    "bbh.empty_target": "{where}: the target is empty",
    "bbh.empty_input": "{where}: the input is empty",
    "bbh.no_examples": "{where} holds no examples",
    "bbh.no_file": "{where} is not a BBH file: {problem}",
    "bbh.no_questions": "bbh: no questions for '{name}': {path} has neither bbh/{name}.json nor "
    "{name}.json (keju data pull bbh, or point --data-dir at the right folder)",
    "bbh.final_line": "{benchmark}: final_line belongs to protocol mcpbr, not to {protocol}",
    "bbh.unknown_setting": "unknown setting '{setting}'{hint}",
    "bbh.placeholder_missing": "prompt_template: the placeholder {placeholder} is missing{hint}",
    "bbh.mcpbr_no_shots": "protocol mcpbr has no worked examples: few_shot_prompt_template refused",
    "bbh.about_reader_paper": "Suzgun et al. 2022: what follows the last 'So the answer is' on its "
    "line, compared exactly",
    "bbh.about_reader_answer_only": "Suzgun et al. 2022: the whole reply, compared exactly",
    "bbh.about_reader_evalscope": "EvalScope 1.14: the line after the last 'So the answer is', "
    "else the first line; of options its first capital letter",
    "bbh.about_reader_mcpbr": "mcpbr 0.14: the last line, letter case aside",
}
CHINESE = {
    "about_exam_bbh": "BIG-Bench Hard：27 个子集（23 项任务）的推理题，共 6,511 题",
    "bbh_subset_left_out": "无法读取 BBH 子任务 {subset}，已略去：{problem}",
    "bbh_fresh": "题目是 Keju 用种子 {seed}、难度 {difficulty} 新出的，不是已发表的题目：得分不是 "
    "BBH 的得分",
    "bbh.fresh_language": "bbh：{path} 中新出的题目使用语言“{lang}”，BBH 的提示和读取器不支持：请按"
    "该处 README.md 所述用 fresh_bbh 考试",
    "bbh.empty_prompt": "{path}：“{name}”的提示为空",
    "bbh.no_prompt": "{path} 中没有“{name}”的提示",
    "bbh.prompts_no_texts": "{path} 不是由文本组成的对象：{problem}",
    "bbh.no_answer_only": "bbh：协议 answer-only 需要 {path} 中的 answer_only_prompts.json，即由"
    "子集到提示文本的 JSON 对象",
    "bbh.nothing_after_dashes": "{path}：“{dashes}”之后没有内容，因此没有示例（few_shot_num 为 "
    "0 时不需要）",
    "bbh.no_dashes": "{path}：canary 之后没有“{dashes}”一行",
    "bbh.no_shots": "bbh：没有“{name}”的示例：{path} 中没有 cot-prompts/{name}.txt（"
    "few_shot_num 为 0 时不需要）",
    "bbh.target_no_answer": "{where}：target “{target}”不是 {subset} 的答案",
    "bbh.target_not_option": "{where}：target “{target}”不是选项之一（{options}）",
    "bbh.empty_target": "{where}：target 为空",
    "bbh.empty_input": "{where}：input 为空",
    "bbh.no_examples": "{where} 中没有题目",
    "bbh.no_file": "{where} 不是 BBH 文件：{problem}",
    "bbh.no_questions": "bbh：没有“{name}”的题目：{path} 中既没有 bbh/{name}.json 也没有 "
    "{name}.json（运行 keju data pull bbh，或用 --data-dir 指向正确的文件夹）",
    "bbh.final_line": "{benchmark}：final_line 属于协议 mcpbr，不属于 {protocol}",
    "bbh.unknown_setting": "未知的设置“{setting}”{hint}",
    "bbh.placeholder_missing": "prompt_template：缺少占位符 {placeholder}{hint}",
    "bbh.mcpbr_no_shots": "协议 mcpbr 没有示例：不接受 few_shot_prompt_template",
    "bbh.about_reader_paper": "Suzgun 等 2022：同一行中最后一个“So the answer is”之后的内容，精确"
    "匹配",
    "bbh.about_reader_answer_only": "Suzgun 等 2022：整个回复，精确匹配",
    "bbh.about_reader_evalscope": "EvalScope 1.14：最后一个“So the answer is”之后的一行，没有则取"
    "第一行；选择题取其中第一个大写字母",
    "bbh.about_reader_mcpbr": "mcpbr 0.14：最后一行，不分大小写",
}
PROTOCOLS = {
    "evalscope": "EvalScope 的 bbh：3 个示例的思维链并说明答案格式，或不用示例",
    "paper": "Suzgun 等 2022：3 个示例的思维链，精确匹配，23 项任务的平均",
    "answer-only": "Suzgun 等 2022：3 个示例，不写推理，精确匹配，23 项任务的平均",
    "mcpbr": "mcpbr 的 bigbench-hard：不用示例，最后一行必须只有答案",
}
SUBSETS = {
    "temporal_sequences": "已知别人一天中在何处见过某人，此人何时有空",
    "disambiguation_qa": "代词指的是谁，或句子没有说清",
    "date_understanding": "由关于今天、昨天等的线索推出日期",
    "tracking_shuffled_objects_three_objects": "三人互换之后谁拿着什么",
    "penguins_in_a_table": "关于一张小动物表的问题，表可能有变动",
    "geometric_shapes": "一条 SVG 路径画的是什么形状",
    "snarks": "两个几乎相同的句子中哪一个是讽刺",
    "ruin_names": "艺人名或片名改动一个字母，哪种改法好笑",
    "tracking_shuffled_objects_seven_objects": "七人互换之后谁拿着什么",
    "tracking_shuffled_objects_five_objects": "五人互换之后谁拿着什么",
    "logical_deduction_three_objects": "由位置的线索推出三样东西的次序",
    "hyperbaton": "哪个句子的形容词合乎英语的通常次序",
    "logical_deduction_five_objects": "由位置的线索推出五样东西的次序",
    "logical_deduction_seven_objects": "由位置的线索推出七样东西的次序",
    "movie_recommendation": "喜欢另外四部电影的人会喜欢的一部",
    "salient_translation_error_detection": "从德语译出的句子有哪一类错误",
    "reasoning_about_colored_objects": "一些彩色物品的数量、颜色或位置",
    "multistep_arithmetic_two": "带括号的四则运算式的值",
    "navigate": "走若干步之后是否回到起点",
    "dyck_languages": "补全括号序列所缺的右括号",
    "word_sorting": "把一列单词按字母顺序排列",
    "sports_understanding": "一句关于体育的话是否说得通",
    "boolean_expressions": "由 True、False、and、or、not 组成的式子的值",
    "object_counting": "一列东西中某一类有多少",
    "formal_fallacies": "论证是否仅凭前提就成立",
    "causal_judgement": "一般人是否会把某事称为原因",
    "web_of_lies": "若干人中最后一个是否说真话",
}
DESCRIBED = {f"protocol.bbh.{name}": text for name, text in PROTOCOLS.items()} | {
    f"subset.bbh.{name}": text for name, text in SUBSETS.items()
}
"""Chinese for what the exam declares in English."""
messages.add("en", ENGLISH)
messages.add("zh", CHINESE)
messages.add_help(DESCRIBED)
