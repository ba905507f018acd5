"""The reading of answers from the text of a reply. The table shows where a new rule belongs.

| a rule about | goes to |
|---|---|
| reasoning that is not the answer, ``<think>`` | `segments` |
| where an answer begins and ends, its decoration (LaTeX, quotes), run-on text | `segments` |
| a wording that announces an answer: ``the answer is``, ``故选``, a box | `wordings` |
| an option that a reply concludes without an announcement: ``I'd go with B`` | `conclusions` |
| options discussed one after another: called right, wrong or the answer | `discussions` |
| which of several answers counts, what corrects an answer | `decision` |
| words that deny, suppose or reject an answer, or join a second answer to it | `decision` |
| an option that a sentence names, by label or text, and whether it asserts it | `option_mentions` |
| where sentences end, which sentences conclude, words that retract a conclusion | `sentences` |
| verdicts, counts and lists of words that the last sentences conclude | `verdicts` |
| labels of options | `labels` |
| options by their text, in any spelling, and by value | `options` |
| numbers: how they are written, and when a number is part of a longer expression | `numbers` |
| another kind of answer, or how a kind is read and compared | `kinds` |
| a reply that begins or ends with an answer alone, or with the cues of the prompt | `boundaries` |
| the statement that a marker announces | `statements` |
| the order of the steps | `robust` |

`reader` defines the interface of all readers. It also contains the published readers that several
exams share. The other published readers are in the packages of their exams.

Every function here is a pure function of text and takes linear time. Keju reads a looping reply of
100 kB in milliseconds. It never guesses. The comment at each pattern shows an example that the
pattern matches and an example that it must not match.
"""
