"""How right readers are: labelled replies, the rules of other tools, and what each one reads.

`replies` joins keys with texts, `values` compares what was read, `rules` holds the readers, `draw`
chose the replies of the corpus, `asking` and `replying` made the embedded model's later sets,
`outside` reads labelled replies of the data folder, `rule_table` counts which rule decides for
which model, and ``python -m perf.reading`` (``make readers``) prints the tables.
"""
