"""Messages about BixBench in English and Chinese."""

from __future__ import annotations

from keju import messages

ENGLISH = {
    "about_exam_bixbench": "computational biology: 205 questions about real analyses (296 in "
    "version 1.0)",
    "bixbench.data_folders": "the data folders of a capsule",
    "bixbench.only_agentic": "{name} has an effect only with mode 'agentic'",
    "bixbench.only_docker": "{name} has an effect only with enable_agentic_docker true",
    "bixbench.refused_shots": "{name} refused: BixBench has no worked examples",
    "bixbench.refused_shuffle": "{name} refused: use shuffle_options, true by default",
    "bixbench.only_mcq": "{name} has an effect only with answer_mode 'mcq'",
    "bixbench.only_hypothesis_mcq": "{name} has an effect only with question_source "
    "'hypothesis' and answer_mode 'mcq'",
    "bixbench.not_hypothesis": "{name} has no effect with question_source 'hypothesis'",
    "bixbench.only_open_mcq": "{name} has an effect only with answer_mode 'open' and "
    "question_source 'mcq'",
    "bixbench.not_exact": "{name} has no effect with no_judge 'exact': leave one of them out",
    "bixbench.no_version": "{path} holds no BixBench {version}{other}",
    "bixbench.is_version": "; {where} is version {version}",
    "bixbench.list_missing": "{where}: '{name}' should be a list and is missing",
    "bixbench.no_list": "{where}: '{name}' should be a list and is none",
    "bixbench.text_missing": "{where}: '{name}' is missing",
    "bixbench.no_text": "{where}: '{name}' is empty or no text",
    "bixbench.unknown_order": "without 'choices' its options are of an unknown order: only its "
    "own '{key}' can be compared (--gold recorded)",
    "bixbench.mode_of_protocol": "protocol '{protocol}' does not go with mode '{mode}': leave "
    "one of them out",
    "bixbench.exact": "no judge: open answers that no rule decides count as right only where "
    "they are the target's very text",
    "bixbench.no_capsules": "no capsules in {folder}: agentic mode works on the data of the "
    "questions; get it with keju data pull bixbench --capsules, or name its folder with "
    "--capsules DIR (capsule_dir)",
    "bixbench.no_capsule": "{folder} has no capsule {capsule}: get it with keju data pull "
    "bixbench --capsules, or ask other questions",
    "bixbench.empty_capsule": "{where} holds no data, nothing but the solution",
    "bixbench.compat_shuffle": "compat_shuffle has no effect with shuffle_options false",
    "bixbench.no_shots": "few_shot_num must be 0: BixBench has no worked examples",
    "bixbench.truth": "{where}: 'answer' should be true or false, not '{value}'",
    "bixbench.no_capsule_questions": "{where}: the capsule has no questions",
    "bixbench.no_mapping": "{inside}: expected a mapping",
    "bixbench.range": "{where}: the ideal of a range_verifier must be (lower,upper): {ideal}",
    "bixbench.eval_mode": "{where}: unknown eval_mode '{mode}'{hint}",
    "bixbench.no_distractors": "{where}: 'distractors' is empty: the key would be the only option",
    "bixbench.contradicts": "{where}: question '{id}' contradicts its capsule's answer",
    "bixbench.question_twice": "{where}, row {number}: question '{id}' occurs twice",
    "bixbench.no_rows": "{where} holds no rows",
    "bixbench.two_versions": "{where}, row {number}: version {version} after rows of version "
    "{first}; keep the two versions in files of their own",
    "bixbench.no_row": "{where}, row {number}: no BixBench row, it has {fields}",
    "bixbench.nothing_of_view": "BixBench: the data holds no question of this view",
    "bixbench.subset_list_empty": "subset_list is empty: leave it out",
    "bixbench.subset_not_asked": "subset_list: '{name}' is not asked; the only subset here is "
    "'{subset}' (see data_version and question_source)",
    "bixbench.all_questions": "all_questions has no effect: v1.5 has one question a row; leave "
    "it out, or take data_version '1.0'",
    "bixbench.no_hypothesis": "protocol '{protocol}' has no hypothesis view: use protocol "
    "'environment', or question_source 'mcq'",
    "bixbench.about_reader_official": "Future-House: the letter in the last <answer>…</answer>",
    "bixbench.about_reader_environment": "the verifiers environment: a letter alone, announced or "
    "first; 'Option X'; the text of an option, or one much like it",
    "bixbench.about_reader_native": "open answers: the whole reply or what its tags hold, numbers "
    "by value",
    "bixbench.about_reader_tolerant": "as native; rounded numbers and percentages are met too",
    "bixbench.about_reader_hypothesis": "true or false: the whole reply, or its first word",
}
CHINESE = {
    "about_exam_bixbench": "计算生物学：关于真实分析的 205 道题（1.0 版为 296 道）",
    "bixbench.data_folders": "数据胶囊的数据文件夹",
    "bixbench.only_agentic": "{name} 只在 mode“agentic”下起作用",
    "bixbench.only_docker": "{name} 只在 enable_agentic_docker 为 true 时起作用",
    "bixbench.refused_shots": "{name} 不被接受：BixBench 没有示例",
    "bixbench.refused_shuffle": "{name} 不被接受：请用 shuffle_options，默认为 true",
    "bixbench.only_mcq": "{name} 只在 answer_mode“mcq”下起作用",
    "bixbench.only_hypothesis_mcq": "{name} 只在 question_source“hypothesis”且 "
    "answer_mode“mcq”下起作用",
    "bixbench.not_hypothesis": "{name} 在 question_source“hypothesis”下不起作用",
    "bixbench.only_open_mcq": "{name} 只在 answer_mode“open”且 question_source“mcq”下起作用",
    "bixbench.not_exact": "{name} 在 no_judge“exact”下不起作用：去掉其中一个",
    "bixbench.no_version": "{path} 中没有 BixBench {version}{other}",
    "bixbench.is_version": "；{where} 是版本 {version}",
    "bixbench.list_missing": "{where}：“{name}”应当是列表，但缺失",
    "bixbench.no_list": "{where}：“{name}”应当是列表，但不是",
    "bixbench.text_missing": "{where}：缺少“{name}”",
    "bixbench.no_text": "{where}：“{name}”为空或不是文本",
    "bixbench.mode_of_protocol": "协议“{protocol}”与模式“{mode}”不相配：去掉其中一个",
    "bixbench.exact": "没有评分模型：规则无法判定的开放题答案仅在与标准答案逐字相同时算对",
    "bixbench.unknown_order": "没有“choices”，选项顺序未知：只能与该行自带的“{key}”比较"
    "（--gold recorded）",
    "bixbench.no_capsules": "{folder} 中没有数据胶囊：agentic 模式需要题目的数据；用 keju data "
    "pull bixbench --capsules 获取，或用 --capsules DIR（capsule_dir）指定文件夹",
    "bixbench.no_capsule": "{folder} 中没有胶囊 {capsule}：用 keju data pull bixbench "
    "--capsules 获取，或换别的题目",
    "bixbench.empty_capsule": "{where} 中没有数据，只有答案",
    "bixbench.compat_shuffle": "shuffle_options 为 false 时 compat_shuffle 不起作用",
    "bixbench.no_shots": "few_shot_num 只能为 0：BixBench 没有示例",
    "bixbench.truth": "{where}：“answer”应为 true 或 false，而不是“{value}”",
    "bixbench.no_capsule_questions": "{where}：该胶囊没有问题",
    "bixbench.no_mapping": "{inside}：应当是映射",
    "bixbench.range": "{where}：range_verifier 的 ideal 必须是“(lower,upper)”：{ideal}",
    "bixbench.eval_mode": "{where}：未知的 eval_mode “{mode}”{hint}",
    "bixbench.no_distractors": "{where}：“distractors”为空：正确答案将是唯一的选项",
    "bixbench.contradicts": "{where}：问题“{id}”与其胶囊的答案矛盾",
    "bixbench.question_twice": "{where} 第 {number} 行：问题“{id}”出现两次",
    "bixbench.no_rows": "{where} 中没有行",
    "bixbench.two_versions": "{where} 第 {number} 行：版本 {version} 出现在版本 {first} 的行之后"
    "；请把两个版本放在各自的文件里",
    "bixbench.no_row": "{where} 第 {number} 行：不是 BixBench 的行，它的字段是 {fields}",
    "bixbench.nothing_of_view": "BixBench：数据中没有这种视图的问题",
    "bixbench.subset_list_empty": "subset_list 为空：请去掉它",
    "bixbench.subset_not_asked": "subset_list：“{name}”不会被提问；这里唯一的子集是“{subset}”（"
    "见 data_version 和 question_source）",
    "bixbench.all_questions": "all_questions 不起作用：v1.5 每行一个问题；去掉它，或使用 "
    "data_version“1.0”",
    "bixbench.no_hypothesis": "协议“{protocol}”没有 hypothesis 视图：使用协议“environment”，或 "
    "question_source“mcq”",
    "bixbench.about_reader_official": "Future-House：最后一个 <answer>…</answer> 中的字母",
    "bixbench.about_reader_environment": "verifiers 环境：单独、宣布的或开头的字母；“Option X”；"
    "选项的文字，或与之很像的文字",
    "bixbench.about_reader_native": "开放题：整个回复或标签中的内容，数字按数值比较",
    "bixbench.about_reader_tolerant": "同 native；四舍五入的数字和百分数也算相符",
    "bixbench.about_reader_hypothesis": "真或假：整个回复，或它的第一个词",
}
DESCRIBED = {
    "protocol.bixbench.environment": "verifiers 环境：一条系统提示，只答字母或简短的答案",
    "protocol.bixbench.official": "Future-House 的无示例脚本：一条消息，温度 1，答案写在标签中",
    "protocol.bixbench.agentic": "Future-House 的笔记本智能体：数据、单元格和要提交的答案（mode "
    "agentic）",
}
"""Chinese for what the exam declares in English."""
messages.add("en", ENGLISH)
messages.add("zh", CHINESE)
messages.add_help(DESCRIBED)
