"""The web app of ``keju view``: a read-only view of stored runs in a browser, also while they run.

    index      where the replies of a journal are, and their outcomes; it is kept up to date
    filters    the filters of an address, and the replies that they select
    search     words in replies; `condition` evaluates conditions in a limited child process
    run_index  the runs of a folder by name, each with its index, results and questions
    summary    the summary of a run, made of its results or of its journal so far
    watch      unfinished runs, as the lines of ``keju watch``; `live` has their rate and time left
    home       the rows of the first page
    pages      the page of each address
    comparing  pages with more than one run
    app        addresses, headers, the token, and the server

Pages are HTML and work without scripts; ``static/viewer.js`` adds shortcuts.
"""
