"""Mathematical answers: LaTeX and plain notation, and when two answers are equal.

| module | content |
|---|---|
| `notation` | cleans a text and splits it into tokens |
| `parsing` | reads tokens as an expression, a tuple, a set, a matrix, a relation or a text |
| `values` | evaluates expressions: exactly as fractions, or as numbers at given points |
| `equivalence` | says whether two answers are equal |
| `kind` | the kind of answer for the robust reader, and the search for boxes |
| `qwen` | the published reader of Qwen2.5-Math |
| `qwen_formulas` | formulas as that reader's published code reads them |
| `simple_evals` | the published reader of simple-evals |

There is no computer algebra here. Two expressions are equal if their exact values are equal or,
with roots, functions or variables, if their values agree at several points. sympy and mpmath would
add 33 MB to the installation (86 MB compiled), take 0.3 s to import, and need unbounded time for
some inputs. Here all steps take linear time, and each limit on size and depth is a constant.
"""
