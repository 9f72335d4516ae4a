# What there is to run. The two commands for a fresh machine are those of run.py, which needs no make; each sets up what it
# needs in .venv. The tests of Spark have an environment of their own: Spark wants an older pandas.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-dev
SPARK_VENV := .venv-spark
SPARK_READY := $(SPARK_VENV)/.ready

.PHONY: demo test test-all test-spark test-long words lint bench verify frozen frozen-commands crashes fuzz mutants coverage docs wheel clean help

help:
	@echo "make demo       set up, then run dphmm demo (writes demo-out/report.html)"
	@echo "make test       set up, then run the tests, without those marked slow"
	@echo "make test-all   the slow tests too"
	@echo "make test-spark  set up Spark in .venv-spark (and a Java runtime where there is none), then run its tests"
	@echo "make test-long  the long statistical and real-data tests too"
	@echo "make words      the tests that draw the system's own random words, 200 times each, alone"
	@echo "make lint       style, types and the import contract"
	@echo "make docs       set up, then build the documentation site (docs-out/index.html)"
	@echo "make wheel      build wheel and archive, install them in a fresh environment, run the demo there"
	@echo "make bench      every speed figure as a ratio against the papers' algorithms written plainly (a quarter of an hour)"
	@echo "make verify     the worst log-ratio over all required pairs of 10,000 random instances (6 minutes on two cores)"
	@echo "make frozen     random worlds, this tree against the commit AGAINST, byte for byte (5 minutes)"
	@echo "make frozen-commands  the same with the commands on real data, where there are any (10 minutes)"
	@echo "make crashes    1,000 kills at random and named points (5 minutes)"
	@echo "make fuzz       every file reader under coverage-guided fuzzing, a minute each (where atheris is installed)"
	@echo "make mutants    seeded privacy bugs, each of which a test must catch (half an hour)"
	@echo "make coverage   line coverage with the kernels as plain Python"

$(READY): pyproject.toml
	$(PYTHON) run.py setup

$(SPARK_READY): pyproject.toml
	$(PYTHON) -m venv $(SPARK_VENV)
	$(SPARK_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(SPARK_VENV)/bin/python -m pip install --quiet -e '.[dev-spark]'
	touch $(SPARK_READY)

demo:
	$(PYTHON) run.py demo

test:
	$(PYTHON) run.py test

test-all:
	$(PYTHON) run.py test --all

test-spark: $(SPARK_READY)
	bash .ci/system-packages java
	DPHMM_TESTS_SKIPS=none $(SPARK_VENV)/bin/python -m pytest tests/spark

test-long: $(READY)
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=searching

words: $(READY)
	PYTHONPATH=tests $(BIN)/python -m system_words

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

verify: $(READY)
	PYTHONPATH=tests $(BIN)/python -m exactness --instances 10000 --jobs 2

frozen: $(READY)
	PYTHONPATH=tests:. $(BIN)/python -m frozen --against $(or $(AGAINST),HEAD) --worlds 60

frozen-commands: $(READY)
	PYTHONPATH=tests:. $(BIN)/python -m frozen --against $(or $(AGAINST),HEAD) --worlds 48 --families real_commands

crashes: $(READY)
	$(BIN)/python benchmarks/crashes.py --kills 1000

fuzz: $(READY)
	$(BIN)/python tests/fuzz/guided.py --seconds 60

mutants: $(READY)
	PYTHONPATH=tests $(BIN)/python -m mutants

coverage: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m "not long" --cov=dphmm --cov-report=term-missing

docs:
	$(PYTHON) run.py docs

wheel:
	$(PYTHON) run.py wheel

clean:
	rm -rf $(VENV) $(SPARK_VENV) demo-out docs-out
