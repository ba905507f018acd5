"""Files that ``keju init`` writes, with ``@WORDS@`` to fill in."""
