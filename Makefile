# The commands of this project. `make` alone lists them. Without make (Windows): see README.md.

# The first of these that is 3.11 or newer makes .venv; `make PYTHON=... test` names one.
PYTHON ?= python3.11 python3.12 python3.13 python3
BIN = .venv/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check
INSTALL = $(PIP) install --quiet --constraint constraints.txt --editable ".[demo]"
PINS = pyproject.toml constraints.txt .venv/stamp-pip
# One thread per process: the suite runs two processes, and small tensors gain nothing from more.
ONE_THREAD = OMP_NUM_THREADS=1
# Hundreds of processes import the package; with their bytecode kept each compiles nothing anew.
export PYTHONDONTWRITEBYTECODE =
LAB = --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.news_url=
# In a container one often is root, where Jupyter asks to be told that this is meant.
LAB += $(shell [ "$$(id -u)" != 0 ] || echo --allow-root)

help:
	@echo "make demo            train the quickstart's network; leaves build/quickstart.html and its record"
	@echo "make lab             open the quickstart in JupyterLab"
	@echo "make test            the quick tests: units, laws, the panel in a headless browser; four minutes"
	@echo "make test-changed    those of them that uncommitted changes can affect; SINCE=main~3 for more"
	@echo "make test-slow       the slow tests: processes killed, long laws, JupyterLab in a headless browser"
	@echo "make mark-slow       mark the cases slow that the last make test found above a tenth of a second"
	@echo "make check           format, lint, types, import contracts, what is read of pages and scripts"
	@echo "make bench           what watching costs, beside TensorBoard and others; about an hour"
	@echo "make docs            the documentation site, in build/site"
	@echo "make test-docs       every page of it: links, names, and in a headless browser"
	@echo "make test-stress     trainings on several threads, and interrupts at a thousand moments each"
	@echo "make test-stories    whole notebooks, and long days in the panel of a real JupyterLab"
	@echo "make test-crash      writers of a record killed again and again, under readers"
	@echo "make test-kernels    the kernel protocol on other versions of ipykernel"
	@echo "make test-frontends  the panel in marimo, Voilà, Notebook 7 and nbclassic"
	@echo "make test-libraries  training by Lightning, Hugging Face and others; models of theirs"
	@echo "make test-axolotl    training by axolotl, in an environment of four gigabytes"
	@echo "make test-readers    a record read in JavaScript; needs npm"
	@echo "make test-release    the wheel in empty environments, with the lowest and the newest versions"
	@echo "make test-s3         records and a panel on S3, on a server of the tests' own"
	@echo "make test-postgres   the catalogue in PostgreSQL, on a server of the tests' own"
	@echo "make mutants         changes that no test notices; ROOM=record/write is a subpackage"
	@echo "make test-gpu        what needs a CUDA device; skipped where there is none"
	@echo "make gpu             all that a machine with a GPU can tell, in nine minutes; PARTS=\"tests bench\""
	@echo "make test-python     the quick tests on another Python: make test-python PYTHON=python3.13"
	@echo "make nightly         every command that runs by name only, and one table; hours"
	@echo "make clean           remove .venv, build and caches"

demo: .venv/stamp-demo
	$(ONE_THREAD) $(BIN)/python tools/demo.py

lab: .venv/stamp-demo
	$(BIN)/jupyter lab $(LAB) notebooks/quickstart.ipynb

# What runs by name only. The other tests are quick, slow, static (`make check`) or of the site.
BY_NAME = stories or kernels or gpu or libraries or frontends or crash or readers or s3 or postgres or release or stress
# One worker for each core, of two, and one more: tests wait for browsers. What has
# become slow is reported at the end.
WORKERS = --numprocesses 3 --dist loadgroup --durations 12 --durations-min 1
BROWSER = browser=$$($(BIN)/python tools/find_browser.py) && $(ONE_THREAD) NOTEBOOK_PROBE_BROWSER="$$browser"
# `make test ALL=1`, as CI does: slow tests and those of the site, too, in the same session.
TESTS = $(if $(ALL),not (static or $(BY_NAME)),not (slow or docs or static or $(BY_NAME)))

test: .venv/stamp-test $(if $(ALL),docs)
	@$(BROWSER) $(BIN)/python -m pytest -m "$(TESTS)" $(WORKERS) --pace=check $(OPTIONS)

test-slow: .venv/stamp-test
	@$(BROWSER) $(BIN)/python -m pytest -m "slow and not (docs or static or $(BY_NAME))" $(WORKERS)

# `make test-changed SINCE=main~3`; by default, what is not committed yet.
SINCE = HEAD
test-changed: .venv/stamp-test
	@mkdir -p build && $(BIN)/python -m tools.affected --since "$(SINCE)" > build/affected.txt
	@if [ -s build/affected.txt ]; then $(MAKE) --no-print-directory test OPTIONS=@build/affected.txt; fi

# Marks the quick cases that the last `make test` found too slow.
mark-slow: .venv/stamp-test
	@$(BROWSER) $(BIN)/python -m tests.pace

test-stories: .venv/stamp-test
	@$(BROWSER) $(BIN)/python -m pytest -m stories $(WORKERS)

test-stress: .venv/stamp-test
	@$(ONE_THREAD) $(BIN)/python -m pytest -m stress

check: .venv/stamp-check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb notebooks/broken/*.ipynb notebooks/colab/*.ipynb
	$(ONE_THREAD) $(BIN)/python -m pytest -m static tests/static --quiet
	@$(MAKE) --no-print-directory check-javascript

# The types of the panel's JavaScript. NODE_NEEDED=1 fails where there is no Node.js, as in CI.
check-javascript:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory build/javascript/stamp \
	  && build/javascript/node_modules/.bin/tsc --project tools/javascript; \
	else echo "types of the JavaScript: skipped, npm is needed, which comes with Node.js 20 or newer" >&2; \
	  [ -z "$(NODE_NEEDED)" ]; fi

build/javascript/stamp: tools/javascript/package.json
	@mkdir -p $(@D) && cp $< $(@D)
	npm install --prefix $(@D) --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	@touch $@

# The panel on the first page is that of this commit. Mkdocs speaks of its successor at every start,
# and `--quiet` would take the warnings from `--strict`.
docs: .venv/stamp-demo .venv-docs/stamp
	@mkdir -p build
	$(ONE_THREAD) $(BIN)/python -m tools.site_panel build/panel.html
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict

test-docs: docs .venv/stamp-test
	@$(BROWSER) $(BIN)/python -m pytest -m docs tests/site

bench: .venv-bench/stamp
	.venv-bench/bin/python -m benchmarks

test-crash: .venv/stamp-test
	$(ONE_THREAD) $(BIN)/python -m pytest -m crash

test-kernels: .venv/stamp-test .venv-ipykernel-6.31/stamp .venv-ipykernel-7.3/stamp .venv-ipykernel-colab/stamp
	@$(BROWSER) $(BIN)/python -m pytest -m kernels

# `make test-release PYTHONS="python3.11 python3.13"`; by default, on the Python of .venv.
test-release: .venv/stamp-test
	@$(BROWSER) NOTEBOOK_PROBE_PYTHONS="$(PYTHONS)" $(BIN)/python -m pytest -m release tests/release

# Both files of a release, made again from the same commit byte for byte.
dist: .venv/stamp-test
	rm -rf dist && $(BIN)/python -m hatchling build

check-workflows: .venv-workflows/stamp
	.venv-workflows/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	.venv-workflows/bin/zizmor --offline --quiet .github/workflows

release-check: check check-workflows docs
	$(BIN)/python -m pytest tests/release/test_artifacts.py
	$(MAKE) test-release PYTHONS="$(PYTHONS)"

test-s3: .venv/stamp-test .venv-s3/stamp
	@$(BROWSER) $(BIN)/python -m pytest -m s3 tests

test-postgres: .venv/stamp-test
	$(ONE_THREAD) $(BIN)/python -m pytest -m postgres tests/catalogues

test-libraries: .venv-libraries/stamp .venv-graphs/stamp .venv-fastai/stamp
	$(ONE_THREAD) .venv-libraries/bin/python -m pytest -m libraries tests/libraries --numprocesses $(if $(ALL),3,2) --dist loadfile
	$(ONE_THREAD) .venv-graphs/bin/python -m pytest -m libraries tests/graph/of_libraries --numprocesses 2
	$(ONE_THREAD) .venv-fastai/bin/python -m pytest -m libraries tests/trainers_apart

test-axolotl: .venv-axolotl/stamp
	$(ONE_THREAD) .venv-axolotl/bin/python -m pytest -m libraries tests/trainers_apart

test-frontends: .venv/stamp-test .venv-frontends/stamp
	@$(BROWSER) .venv-frontends/bin/python -m pytest -m frontends tests/frontends

test-readers: .venv/stamp-test
	@command -v npm >/dev/null || { echo "npm is needed, which comes with Node.js 20 or newer" >&2; exit 1; }
	npm install --prefix tests/readers --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	$(BIN)/python -m pytest -m readers tests/readers

# Changes of the files that differ from commit SINCE, or of the subpackage ROOM; at most MOST of them.
mutants: .venv/stamp-test
	$(ONE_THREAD) $(BIN)/python -m tools.mutants --since "$(SINCE)" \
	  $(if $(ROOM),--room $(ROOM)) $(if $(MOST),--most $(MOST))

test-gpu: .venv/stamp-test
	$(ONE_THREAD) $(BIN)/python -m pytest -m gpu

# Nothing is installed but wheels that lie beside the checkout: a machine with a GPU may have no network.
# `make gpu PARTS="tests bench" OPTIONS="--device cpu"` checks the logic of these parts without one.
gpu:
	@$(ONE_THREAD) $(firstword $(wildcard $(BIN)/python) python3) -m tools.gpu $(PARTS) $(OPTIONS)

# `make nightly PARTS="kernels s3"` runs some of them.
nightly: .venv/stamp-test
	$(BIN)/python -m tools.nightly $(PARTS)

# `make test-python PYTHON=python3.13`, in an environment of its own.
test-python: BIN = .venv-python/bin
test-python:
	$(firstword $(PYTHON)) -m tools.group_env python
	@$(BROWSER) $(BIN)/python -m pytest -m "$(TESTS)" $(WORKERS)

clean:
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# A stamp says what .venv holds; repeating a command installs nothing.
# pip 25.1 is the first that reads dependency groups.
.venv/stamp-pip:
	@for python in $(PYTHON); do \
	  if $$python -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; \
	  then echo "creating .venv with $$python"; exec $$python -m venv .venv; fi; \
	done; echo "Python 3.11 or newer is needed; tried: $(PYTHON)" >&2; exit 1
	$(PIP) install --quiet --upgrade "pip>=25.1"
	@touch $@

.venv/stamp-demo: $(PINS)
	$(INSTALL)
	@touch $@

.venv/stamp-test: $(PINS)
	$(INSTALL) --group test
	@touch $@

.venv/stamp-check: $(PINS)
	$(INSTALL) --group test --group check
	@touch $@

# Apart from .venv: what a dependency group of pyproject.toml declares.
.venv-%/stamp: pyproject.toml constraints.txt $(wildcard constraints-*.txt) .venv/stamp-pip
	$(BIN)/python -m tools.group_env $*

.PHONY: help demo lab docs test-docs test test-slow test-changed mark-slow test-stories test-stress check check-javascript bench test-crash test-kernels test-frontends test-libraries test-axolotl test-readers test-release release-check check-workflows dist test-s3 test-postgres test-gpu gpu test-python nightly mutants clean
