# The two commands of the README: `make demo` and `make test`. The others are their parts.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check perf clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo    install Keju and sit a model for a short exam, with a report"
	@echo "make test    install what the tests need and run the whole suite"
	@echo "make check   ruff and mypy alone"
	@echo "make perf    measure Keju against bare loops and bounds"
	@echo "make clean   remove what the other targets made"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Keju needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev,data]'
	@touch $@

demo: $(VENV)/.core
	$(BIN)/keju eval --model scripted --datasets demo --work-dir demo --run-id demo
	@echo "The report: demo/demo/report.html"

check: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: check
	$(BIN)/python -m pytest -n auto --dist loadfile

perf: $(VENV)/.dev
	$(BIN)/python -m perf

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
