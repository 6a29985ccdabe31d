# For a fresh machine: `make demo` runs breakscope on a bundled training script, `make quick` runs the checks that
# need no torch (a minute), `make test` every check that CI runs (15 minutes). Each makes its environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo quick test nightly test-all lint unit clean

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

unit: $(VENV)/.test
	$(BIN)/pytest

# Everything, also what takes the better part of an hour.
nightly: lint
	$(BIN)/pytest -m ''

test-all: nightly

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[torch]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[torch,test,models,lint]'
	touch $@

clean:
	rm -rf $(VENV) .breakscope .pytest_cache .mypy_cache .ruff_cache
