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
ASSETS := lossbisect/report/html/assets
UV = $(shell command -v uv || echo $(STAMPS)/uv/bin/uv)
INSTALL = $(UV) pip install --quiet --python $(BIN)/python
APT = DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends
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

# A file's tests stay together: they share real runs and the Slurm cluster.
pytest: dev train browser slurm
	$(BIN)/python -m pytest -n 2 --dist loadfile

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

# Chromium, in which the report pages are tested. Only root on a Debian can install it here; elsewhere its tests say that
# they are left out. LOSSBISECT_CHROMIUM names another one.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || [ -n "$(LOSSBISECT_CHROMIUM)" ] \
	    || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && echo "Installing Chromium for the tests of the pages" \
	        && { $(APT) install chromium || { $(APT) update && $(APT) install chromium; }; }; } \
	    || echo "No Chromium: the tests of the report pages will be skipped"

# Slurm, a cluster of one node that the tests of the executors start for themselves. As with Chromium.
.PHONY: slurm
slurm:
	@PATH="$$PATH:/usr/sbin"; command -v slurmctld >/dev/null && command -v munged >/dev/null \
	    || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && echo "Installing Slurm for the tests of the executors" \
	        && { $(APT) install slurm-wlm munge || { $(APT) update && $(APT) install slurm-wlm munge; }; } >/dev/null; } \
	    || echo "No Slurm: the tests that need one will be skipped"

# uPlot, which draws the curves of the report pages: make charts VERSION=1.6.33
.PHONY: charts
charts:
	rm -rf $(STAMPS)/uplot && mkdir -p $(STAMPS)/uplot
	cd $(STAMPS)/uplot && npm pack --silent uplot@$(VERSION) && tar xzf uplot-*.tgz
	cp $(STAMPS)/uplot/package/dist/uPlot.iife.min.js $(STAMPS)/uplot/package/dist/uPlot.min.css $(ASSETS)
	cp $(STAMPS)/uplot/package/LICENSE $(ASSETS)/uPlot.LICENSE

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


