# make serve: the server with the sample sites.   make test: everything that CI checks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: serve test test-slow lock clean

serve: $(VENV)/.installed
	$(BIN)/askable serve --demo $(ARGS)

test: $(VENV)/.installed-test browser postgres
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto -m "not slow and not qdrant_server" $(ARGS)

test-slow: $(VENV)/.installed-test browser postgres
	$(BIN)/pytest -m slow $(ARGS)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "askable needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) \
	  || { echo "the venv module is missing (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }

$(VENV)/.installed: $(BIN)/python requirements.lock pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/.installed-test: $(BIN)/python requirements-test.lock pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-test.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@ $(VENV)/.installed

# The page tests drive a real Chromium.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium fonts-noto-core; \
	  else echo "the page tests need Chromium: apt install chromium" >&2; fi; }

# Some tests run on PostgreSQL too, on a server that they start themselves. Debian's package would also create and
# start one of the system's own; that is told not to.
.PHONY: postgres
postgres:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    mkdir -p /etc/postgresql-common; \
	    [ -e /etc/postgresql-common/createcluster.conf ] || \
	      echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf; \
	    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql; \
	  else echo "the PostgreSQL tests are skipped without it: apt install postgresql" >&2; fi; }

lock:
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11 \
	  pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11 \
	  --extra test -c requirements.lock pyproject.toml -o requirements-test.lock

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache
