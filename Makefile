# Every target makes its own .venv first; a fresh clone needs nothing but python3 and make.
PYTHON ?= python3
WORKERS ?= 2
OUT ?= out/reproduce
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help test check dev data reproduce explore lint types bench campaign rounding fuzz mutants tables clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: PYTHON=$(PYTHON) (makes .venv), WORKERS=$(WORKERS) (of tests), OUT=$(OUT) (reproduce), ARGS= (campaign, rounding, fuzz, mutants)"

$(INSTALLED): pyproject.toml constraints.txt Makefile
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev,crosscheck,ray,embed,export,web]"
	@touch $@

test: $(INSTALLED) ## Run the tests
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --max-worker-restart 0

check: $(INSTALLED) lint types ## Style, types and the fast tests, in under two minutes on 2 cores
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --max-worker-restart 0 -m "not slow"

dev: $(INSTALLED) ## Have every commit checked (pre-commit)
	$(BIN)/pre-commit install

data: $(INSTALLED) ## Fetch MNIST once, for the tests and claims that look at it
	$(BIN)/polyrelu data fetch mnist

reproduce: $(INSTALLED) ## Measure the papers' claims again and write OUT/index.html
	$(BIN)/polyrelu reproduce --profile quick --out $(OUT)

explore: $(INSTALLED) ## Open the explorer in the browser
	$(BIN)/polyrelu explore

lint: $(INSTALLED) ## Check style and formatting with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED) ## Check types with mypy
	$(BIN)/mypy --strict polyrelu tools

bench: $(INSTALLED) ## Time the gradient flow against its peers
	$(BIN)/python benchmarks/flow.py

campaign: $(INSTALLED) ## Hold every certificate against independent searches (resumes; ARGS=--help)
	$(BIN)/python -m tools.campaign $(ARGS)

rounding: $(INSTALLED) ## Search for points where rounding changes a decision inside a proven radius (ARGS=--help)
	$(BIN)/python -m tools.rounding $(ARGS)

fuzz: $(INSTALLED) ## Read damaged files and call public functions with bad values (ARGS=--help)
	$(BIN)/python -m tools.fuzz $(ARGS)

mutants: $(INSTALLED) ## Plant errors one at a time and list those no test notices (ARGS=--help)
	$(BIN)/python -m tools.mutants $(ARGS)

tables: $(INSTALLED) ## Write the tables of files in docs/architecture again, after a file came, went or changed its first sentence
	$(BIN)/python -m tools.file_tables

clean: ## Remove caches, builds and out/ (keeps .venv)
	rm -rf out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
