"""Reading an answer out of text. Where does my rule go?

| a rule about | goes to |
|---|---|
| reasoning that is not the answer, ``<think>`` | `segments` |
| where an answer begins and ends, what only dresses it (LaTeX, quotes), run-on | `segments` |
| a wording that announces an answer: ``the answer is``, ``故选``, a box | `wordings` |
| an option that a reply concludes without an announcement: ``I'd go with B`` | `conclusions` |
| options discussed one after another: called right, wrong or the answer | `discussions` |
| which of several answers counts, what corrects an answer | `decision` |
| what denies, supposes or rejects an answer, or joins a second one to it | `decision` |
| an option that a sentence names, by label or text, and whether it asserts it | `option_mentions` |
| where sentences end, which of them conclude, what takes a conclusion back | `sentences` |
| verdicts, counts and lists of words that the last sentences conclude | `verdicts` |
| labels of options | `labels` |
| options by their text, in any spelling, and by value | `options` |
| numbers: how they are written, what makes one part of something else | `numbers` |
| another kind of answer, or how a kind is read and compared | `kinds` |
| a reply that begins or ends with a mere answer, or with the prompt's own cues | `edges` |
| what a marker announces, and what it does not | `statements` |
| the order of the steps | `robust` |

`reader` is the contract. Readers that somebody has published stand in their exam's room, except
those that several exams share, which stand there too.

Everything here is a pure function of text and runs in linear time: a looping reply of 100 kB is
read in milliseconds. Nothing is ever guessed. Each pattern has a comment with an example of what it
matches, and of what it must not.
"""
