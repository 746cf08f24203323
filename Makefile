# The first command in a clean clone can be any of these; each sets up what is missing (scripts/setup.sh).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup sim test check lint lock clean

RUN := source scripts/environment.sh;
VENV := .venv/bin

# make sim HUMAN=console RECORD=bags/first SEED=7 PARAMS=my.yaml FAST=1 VERBOSE=1
SIM_OPTIONS = $(if $(HUMAN),--human "$(HUMAN)") $(if $(RECORD),--record "$(RECORD)") \
              $(if $(SEED),--seed "$(SEED)") $(if $(PARAMS),--params "$(PARAMS)") \
              $(if $(FAST),--fast) $(if $(VERBOSE),--verbose)
# make test PYTEST="-k decision"
PYTEST =

help:
	@echo "make sim     three simulated failures, from the failed grasp to the report; HUMAN=console lets you answer,"
	@echo "             RECORD=DIR writes a bag; SEED=N, PARAMS=FILE, FAST=1, VERBOSE=1"
	@echo "make test    all tests; PYTEST=\"-k decision\" passes options to pytest"
	@echo "make check   style, types and all tests"
	@echo "make setup   only what the others do first; the first time takes some minutes"
	@echo "make clean   removes what set-up and builds have made in this folder"

setup:
	@scripts/setup.sh

sim: setup
	@echo "ROS 2: the wheels in .venv$$(command -v ros2 >/dev/null && echo ' (to use the ROS 2 on your PATH, build with colcon: README.md)' || true)"
	@$(RUN) exec $(VENV)/failure-dialogue sim $(SIM_OPTIONS)

test: setup
	@$(RUN) exec $(VENV)/python -m pytest $(PYTEST)

lint: setup
	@$(RUN) $(VENV)/ruff check .
	@$(RUN) $(VENV)/mypy

check: lint test

# After a change to requirements/*.txt, once with each Python: make lock PYTHON=python3.13
lock:
	@rm -rf .setup/lock_venv && mkdir -p .setup && $(or $(PYTHON),python3) -m venv .setup/lock_venv
	@.setup/lock_venv/bin/python -m pip install --quiet -r requirements/build.txt
	@.setup/lock_venv/bin/python scripts/lock_requirements.py

clean:
	rm -rf .venv .setup build install log failure_dialogue.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
