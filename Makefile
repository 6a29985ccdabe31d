# Two commands for a fresh machine: `make demo` runs breakscope on a bundled training script,
# `make test` runs every check that CI runs. Both make their own environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all lint unit clean

demo: $(VENV)/.demo
	$(BIN)/breakscope scan fixtures/plain_training.py

test: lint unit

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.test
	$(BIN)/pytest

# Everything, also what takes the better part of an hour.
test-all: lint
	$(BIN)/pytest -m ''

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
