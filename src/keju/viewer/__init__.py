"""The web app of ``keju view``: stored runs in a browser, read-only, while they go on.

    index      where the replies of a journal stand, and what became of them, kept up to date
    filters    what is asked for in an address, and which replies that selects
    search     words in replies, by DuckDB or by hand
    shelf      the runs of a folder by name, each with its index, results and questions
    summary    what the pages say of a run, made of its results or of what is there so far
    following  runs that go on, as the lines of ``keju watch``
    pages      what each address shows
    comparing  pages with more than one run on them; `diffing` finds the words that differ
    app        addresses, headers, the token; serving

Pages are HTML that needs no script; ``static/viewer.js`` makes them quicker to use.
"""
