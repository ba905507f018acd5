"""The Chinese catalogue (mainland)."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "missing_extra": "{what}需要可选组件：pip install 'keju[{extra}]'",
    # What a reader of results must know.
    "no_gold": "没有标准答案，不评分",
    "no_gold_submission": "没有标准答案，不评分："
    "用 keju export RUN --format submission 导出提交文件",
    "nothing_graded": "没有任何评分：全部 {whole} 个回复均出错或未评分",
    "ungraded_replies": "{whole} 个回复中有 {part} 个（{share:.1%}）没有评分，不计入得分",
    "cut_replies": "{whole} 个回复中有 {part} 个（{share:.1%}）在给出答案前被截断："
    "请增大 max_tokens",
    "unread_replies": "{whole} 个回复中有 {part} 个（{share:.1%}）读不出答案：请对照不同读取器",
    "one_cluster": "所有题目共用同一上下文：无法给出区间",
    "few_clusters": "只有 {clusters} 个聚类：区间本身并不可靠",
    "repeats_at_temperature_0": "温度为 0 时的重复衡量的是接口的噪声，而不是模型的离散程度",
    "missing_predictions": "{whole} 题中有 {missing} 题没有预测",
    "data_changed": "数据在运行之后有改动（{file}）：不再对应的回复不计入",
    "imported": "从 {origin} 导入：提示词为该工具自带",
    "unmatched_rows": "日志中有 {rows} 行在数据中找不到对应的题目",
    # Exams.
    "not_published_rows": "行数与公布的数据不符，得分不可比较：{rows}",
    "not_published_rows_more": "行数与公布的数据不符，得分不可比较：{rows}，另有 {more} 处",
    "repeated_orders": "{questions} 题的选项少于 {rotations} 个：部分轮换会重复同一顺序",
    "judge_of_task": "任务指定的评委取代了考试自身的设置：{settings}",
    # Judges.
    "judge_is_candidate": "评委就是考生本身：其裁决会偏向自己的答案",
    "second_judge_is_candidate": "第二评委就是考生本身：其裁决会偏向自己的答案",
    "judge_is_namesake": "评委与考生同名，但接口不同：若为同一模型，其裁决会偏向自己的答案",
    "second_judge_is_namesake": "第二评委与考生同名，但接口不同："
    "若为同一模型，其裁决会偏向自己的答案",
    "judge_without_key": "评委的 api_key_var 指定的变量 {variable} 未设置：未发送密钥",
    "judge_with_candidates_key": "评委的 api_key_var 指定的变量 {variable} 未设置："
    "发送的是考生的密钥",
    "judge_without_verdict": "评委对 {whole} 个答案中的 {missing} 个没有裁决：对本次运行执行 "
    "keju judge 可再次询问",
    "second_judge_without_verdict": "第二评委对 {whole} 个答案中的 {missing} 个没有裁决：一致性"
    "不包含这些答案",
    "judge_repeats_at_temperature_0": "温度为 0 时评委的重复衡量的是其接口的噪声，而不是评委的把握",
    "judge_not_corrected": "准确率未按评委的误差更正：{reason}",
    # What a run says while it goes on.
    "other_settings": "本次运行以不同的设置继续（{differences}）",
    "damaged_lines": "运行记录中有 {lines} 行无法读取，将重新提问",
    "stopping": "正在停止：等待 {requests} 个进行中的请求完成并保存；再按一次 Ctrl-C 立即停止",
}
