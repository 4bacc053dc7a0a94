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
	@echo "make test            every test of a moment: units, laws, the panel in a headless browser"
	@echo "make test-slow       the others: processes killed, long laws, JupyterLab in a headless browser"
	@echo "make check           format, lint, types, import contracts, notebooks without outputs"
	@echo "make bench           what watching costs, beside TensorBoard and others; about an hour"
	@echo "make docs            the documentation site, in build/site"
	@echo "make test-docs       every page of it: links, names, and in a headless browser"
	@echo "make test-stories    whole notebooks, and long days in the panel of a real JupyterLab"
	@echo "make test-crash      writers of a record killed again and again, under readers"
	@echo "make test-kernels    the kernel protocol on other versions of ipykernel"
	@echo "make test-frontends  the panel in marimo, Voilà, Notebook 7 and nbclassic"
	@echo "make test-libraries  training by Lightning, Hugging Face and others; models of theirs"
	@echo "make test-readers    a record read in JavaScript; needs npm"
	@echo "make test-release    the wheel in empty environments, with the lowest and the newest versions"
	@echo "make test-s3         records on S3, on a server of the tests' own"
	@echo "make test-postgres   the catalogue in PostgreSQL, on a server of the tests' own"
	@echo "make clean           remove .venv, build and caches"

demo: .venv/stamp-demo
	$(ONE_THREAD) $(BIN)/python tools/demo.py

lab: .venv/stamp-demo
	$(BIN)/jupyter lab $(LAB) notebooks/quickstart.ipynb

# What `make test` leaves to commands of their own.
ELSEWHERE = docs or stories or kernels or gpu or libraries or frontends or crash or readers or s3 or postgres or release
# What has become slow is said at the end.
TWO = --numprocesses 2 --dist loadgroup --durations 12 --durations-min 1
BROWSER = browser=$$($(BIN)/python tools/find_browser.py) && $(ONE_THREAD) NOTEBOOK_PROBE_BROWSER="$$browser"

test: .venv/stamp-test
	@$(BROWSER) $(BIN)/python -m pytest -m "not (slow or $(ELSEWHERE))" $(TWO)

test-slow: .venv/stamp-test
	@$(BROWSER) $(BIN)/python -m pytest -m "slow and not ($(ELSEWHERE))" $(TWO)

test-stories: .venv/stamp-test
	@$(BROWSER) $(BIN)/python -m pytest -m stories $(TWO)

check: .venv/stamp-check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb notebooks/broken/*.ipynb notebooks/colab/*.ipynb

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

test-kernels: .venv/stamp-test
	$(BIN)/python tools/kernel_envs.py
	$(BIN)/python -m pytest -m kernels

test-release: .venv/stamp-test
	@$(BROWSER) $(BIN)/python -m pytest -m release tests/release

test-s3: .venv/stamp-test
	$(BIN)/python tools/s3_env.py
	$(ONE_THREAD) $(BIN)/python -m pytest -m s3 tests/record tests/catalogues

test-postgres: .venv/stamp-test
	$(ONE_THREAD) $(BIN)/python -m pytest -m postgres tests/catalogues

test-libraries: .venv/stamp-pip
	$(BIN)/python tools/group_env.py libraries
	$(ONE_THREAD) .venv-libraries/bin/python -m pytest -m libraries tests/libraries --numprocesses 2 --dist loadfile
	$(BIN)/python tools/group_env.py graphs
	$(ONE_THREAD) .venv-graphs/bin/python -m pytest -m libraries tests/graph/of_libraries --numprocesses 2

test-frontends: .venv/stamp-test
	$(BIN)/python tools/group_env.py frontends
	@$(BROWSER) .venv-frontends/bin/python -m pytest -m frontends tests/frontends

test-readers: .venv/stamp-test
	@command -v npm >/dev/null || { echo "npm is needed, which comes with Node.js 20 or newer" >&2; exit 1; }
	npm install --prefix tests/readers --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	$(BIN)/python -m pytest -m readers tests/readers

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

# Apart from .venv: the peers are large, and some packages behave differently where they find one.
# torch comes alone and first, so that nothing replaces the build that is there.
BENCH_INSTALL = .venv-bench/bin/python -m pip --disable-pip-version-check install --quiet \
	--constraint constraints.txt
.venv-bench/stamp: $(PINS)
	$(BIN)/python -m venv .venv-bench
	$(BENCH_INSTALL) "pip>=25.1"
	$(BENCH_INSTALL) torch
	$(BENCH_INSTALL) --editable ".[lab]" --group bench
	@touch $@

# Without torch and without the package, which mkdocs reads as text.
.venv-docs/stamp: pyproject.toml constraints.txt constraints-docs.txt .venv/stamp-pip
	$(BIN)/python -m venv .venv-docs
	.venv-docs/bin/python -m pip --disable-pip-version-check install --quiet "pip>=25.1"
	.venv-docs/bin/python -m pip --disable-pip-version-check install --quiet \
	  --constraint constraints.txt --constraint constraints-docs.txt --group docs
	@touch $@

.PHONY: help demo lab docs test-docs test test-slow test-stories check bench test-crash test-kernels test-frontends test-libraries test-readers test-release test-s3 test-postgres clean
