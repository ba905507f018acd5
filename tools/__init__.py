"""Tools of the repository: `docs` writes the reference pages."""
