# make demo   runs the main job on embedded data, figures in demo/
# make test   passes the tests
# make docs   builds the documentation into site/, and fails at a link that leads nowhere
# make install makes the virtual environment in .venv, which the others do by themselves
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
TEST_EXTRAS ?= test
# A worker for each core; tests that share a server stay together.
PYTEST_ARGS ?= -n logical --dist loadgroup

.PHONY: install demo test lint docs clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else "Python 3.11, 3.12 or 3.13 is needed, this is %d.%d: make PYTHON=python3.11" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[$(TEST_EXTRAS)]'
	@touch $@

demo: install
	$(BIN)/tailor demo

test: install
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: install
	@$(BIN)/python -c "import ruff, mypy, importlinter" 2>/dev/null || $(BIN)/python -m pip install --quiet --editable ".[dev]"
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy

docs: install
	@$(BIN)/python -c "import mkdocs, mkdocstrings, material" 2>/dev/null || $(BIN)/python -m pip install --quiet --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "The site is in site/: open site/index.html (its search needs a server: python3 -m http.server -d site)"

clean:
	rm -rf $(VENV) build site dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
