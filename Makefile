# make demo    set up, then bisect a real Megatron-Core history on this machine's CPU
# make test    set up, then lint, types and all tests
# make setup   only what 'lossbisect compare' needs: no torch
#
# A step is repeated only when its requirement file has changed; after the first time nothing needs the network.

SEED ?= 1
PYTHON ?= python3.12
VENV := .venv
BIN := $(VENV)/bin
STAMPS := .make
UV = $(shell command -v uv || echo $(STAMPS)/uv/bin/uv)
INSTALL = $(UV) pip install --quiet --python $(BIN)/python
export UV_PYTHON_DOWNLOADS := never
# Without byte code every start would compile its libraries anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test setup train dev lint types pytest help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: train
	$(BIN)/lossbisect demo --seed $(SEED)

test: lint types pytest

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: dev
	$(BIN)/mypy

pytest: dev train
	$(BIN)/python -m pytest

setup: $(STAMPS)/base
train: $(STAMPS)/train
dev: $(STAMPS)/dev

$(STAMPS)/uv.found:
	@mkdir -p $(STAMPS)
	@command -v uv >/dev/null || $(PYTHON) -m pip install --quiet --target $(STAMPS)/uv uv
	@touch $@

$(STAMPS)/base: requirements/base.txt pyproject.toml | $(STAMPS)/uv.found
	test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(INSTALL) --no-deps -r requirements/base.txt
	$(INSTALL) --no-deps --editable .
	@touch $@

$(STAMPS)/train: requirements/train.txt $(STAMPS)/base
	@echo "Setting up torch, megatron-core and megatron-bridge (about 6 GB, the first time only)"
	$(INSTALL) --no-deps -r requirements/train.txt
	@touch $@

$(STAMPS)/dev: requirements/dev.txt $(STAMPS)/base
	$(INSTALL) --no-deps -r requirements/dev.txt
	@touch $@

# The pinned requirement files, resolved together so that they fit into one environment.
.PHONY: pins
pins: | $(STAMPS)/uv.found
	cat requirements/train.in requirements/dev.in > $(STAMPS)/all.in
	$(UV) pip compile --quiet --upgrade --python-version 3.12 --no-header --no-annotate \
	    --override requirements/train-overrides.txt $(STAMPS)/all.in pyproject.toml --output-file $(STAMPS)/all.txt
	for part in dev train; do \
	    $(UV) pip compile --quiet --python-version 3.12 --no-header --no-annotate --constraint $(STAMPS)/all.txt \
	        --override requirements/train-overrides.txt requirements/$$part.in --output-file requirements/$$part.txt; \
	done
	$(UV) pip compile --quiet --python-version 3.12 --no-header --no-annotate --constraint $(STAMPS)/all.txt \
	    pyproject.toml --output-file requirements/base.txt


