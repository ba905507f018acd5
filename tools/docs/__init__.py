"""What the documentation is made with: reference pages from the code, ``llms.txt``, the site.

    python -m tools.docs          writes docs/reference-*.md in both languages and llms.txt
    make docs                     the same, and the site

| file | makes |
|---|---|
| ``commands`` | ``reference-cli``, from the rows of options and the help in both languages |
| ``settings`` | ``reference-configuration``, from the settings and the strings below their fields |
| ``results`` | ``reference-results``, from the structs of ``results.json`` |
| ``names`` | ``reference-python``, from the public names of ``keju`` |
| ``fields`` | nothing: texts of fields that have no docstring |
| ``navigation`` | ``llms.txt``, from ``mkdocs.yml`` and the lines of ``docs/index.md`` |
| ``site`` | the site: what mkdocs is told beyond ``mkdocs.yml`` |

Chinese of docstrings is in ``messages/zh/documentation.json``.
"""
