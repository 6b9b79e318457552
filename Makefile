# These verbs run everything. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
DEMO := .venv-demo
BIN := $(VENV)/bin
# On two cores: a worker waits for almost half of its time, and each further one collects all tests.
JOBS ?= 3
COUNT ?= 200
SEED ?= 1

# What decides and what it reads: no training, no program of its own.
FAST := $(addprefix tests/,comparison following metrics rules sanity_checks signals \
        test_architecture.py test_docs.py test_examples.py test_rules.py test_traps.py test_twins.py)

# Tests start hundreds of programs: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast setup check golden docs bench results soak mutants release browser clean

demo: $(DEMO)/.installed ## install the core only, then diagnose a failing and a healthy run
	@$(DEMO)/bin/rlvitals diagnose examples/failing --fail-on never
	@echo
	@$(DEMO)/bin/rlvitals diagnose examples/healthy --fail-on never

# What the tests of a file share, as a training, is made once: each file is one worker's.
test: $(VENV)/.installed browser ## every test but the soak
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not soak"

test-fast: $(VENV)/.installed ## the tests of what decides, for the edit loop: under a minute
	$(BIN)/python -m pytest -n $(JOBS) -m "not soak and not effort" -q $(FAST)

setup: $(VENV)/.installed browser ## the development environment

check: $(VENV)/.installed ## lint, types, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/write_docs.py --check

golden: $(VENV)/.installed browser ## rewrite the golden files; review them in the diff
	$(BIN)/python -m pytest -n $(JOBS) -m "not soak" --update-golden

docs: $(VENV)/.installed ## write the generated pages and build the site into site/
	$(BIN)/python scripts/draw_gallery.py
	$(BIN)/python scripts/write_docs.py
	$(BIN)/python scripts/capture.py examples/failing docs/capture.svg 3
	$(BIN)/python scripts/draw_pictures.py
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .[docs]
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.installed ## every benchmark, with its peer beside it
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .[bench]
	$(BIN)/python benchmarks/run.py

results: $(VENV)/.installed ## every trainer with its defaults and five seeds: docs/trainers/results.md (hours)
	$(BIN)/python benchmarks/results.py $(ARGS)

soak: $(VENV)/.installed ## the long tests
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .[soak]
	RLVITALS_TEST_EFFORT=full $(BIN)/python -m pytest -n $(JOBS) -m "soak or effort or hypothesis"

release: $(VENV)/.installed ## version, changelog, wheels and a trial in a fresh environment
	$(BIN)/python scripts/release.py $(ARGS)

mutants: $(VENV)/.installed ## wrong code that no test notices: COUNT mutants of a SEED (hours)
	$(BIN)/python scripts/mutants.py --count $(COUNT) --seed $(SEED)

$(DEMO)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/pip install --quiet --constraint constraints.txt .
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt hatch_build.py src/rlvitals/tracking/shortcut.c
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .[dev]
	@touch $@

# Their tests open pages in a real browser; where there is none and none can be installed, they are
# skipped, but never under .ci/run.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } || \
	echo "No Chromium: tests that open pages are skipped. As root: apt-get install chromium"

clean:
	rm -rf $(VENV) $(DEMO) .venv-peers site build dist .mypy_cache .ruff_cache .pytest_cache
