# For a fresh machine: `make demo` runs breakscope on a bundled training script, `make quick` runs the checks that
# need no torch (a minute and a half), `make test` every check that CI runs (half an hour). Each makes its environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# For `make versions`: a version of torch such as 2.9.*, or "newest".
TORCH ?= newest
TYPER ?= 0.15.0
# The tests start Python a thousand times: without written bytecode each start compiles our files anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo quick test nightly test-all lint unit versions typer docs wheel clean

demo: $(VENV)/.demo
	$(BIN)/breakscope scan fixtures/plain_training.py

quick: lint
	$(BIN)/pytest --without-torch -m 'not nightly and not slow'

test: lint unit

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.test $(VENV)/.docs
	$(BIN)/pytest

# Everything, also what takes the better part of an hour.
nightly: lint $(VENV)/.docs
	$(BIN)/pytest -m ''

test-all: nightly

# What depends on Dynamo's version, with another torch than ours: the fixtures' truths and the commands.
versions: | $(BIN)/python
	$(BIN)/python -m pip install --quiet 'torch$(if $(filter newest,$(TORCH)),,==$(TORCH))'
	$(BIN)/python -m pip install --quiet -e . --group test
	$(BIN)/pytest tests/test_fixtures.py tests/test_api.py tests/test_cli_contract.py

# The command line with another typer: from 0.15 on each one will do, beside whatever click pip finds for it.
typer: | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e . --group test
	$(BIN)/python -m pip install --quiet 'typer$(if $(filter newest,$(TYPER)),,==$(TYPER))'
	$(BIN)/pytest --without-torch tests/test_cli_contract.py tests/cli/test_help.py tests/cli/test_vocabulary.py

# The site, in site/. Building it needs neither torch nor a network; the first time, pip installs what builds it.
docs: $(VENV)/.docs
	$(BIN)/python -m mkdocs build --strict

# The wheel and the source archive, and one look that the wheel alone works, in an environment of its own.
wheel: | $(BIN)/python
	rm -rf dist $(VENV)/wheel
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv $(VENV)/wheel
	$(VENV)/wheel/bin/python -m pip install --quiet dist/*.whl
	$(VENV)/wheel/bin/breakscope explain BS101
	$(VENV)/wheel/bin/breakscope lint breakscope/cli

# The pip that comes with Python 3.11 knows no dependency groups.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[torch]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[torch]' --group test --group models --group lint
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet -e . --group docs
	touch $@

clean:
	rm -rf $(VENV) site .breakscope .pytest_cache .mypy_cache .ruff_cache
