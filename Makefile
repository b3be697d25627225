# Two commands set everything up: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
AUDIT := $(VENV)/audit/bin/pip-audit
IN_MEMORY := $(shell test -w /dev/shm && df -Pk /dev/shm | awk 'NR == 2 && $$4 > 4000000 {print "/dev/shm"}')

# The tests start crew thousands of times; without bytecode each start would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check lint audit faults clis package bench repositories docs pictures snapshots tools clean

demo: $(READY)
	@$(BIN)/crew demo

# Everything that must hold before a change lands, apart from the real CLIs and the long fault suites. Six at once
# on two cores: many tests wait for a process most of their time. Their files are in memory where
# there is enough of it: crew waits for the disk as often as it must, and the tests thousands of times.
# They are handed out a few at a time, the longest first, so that no worker is left with many of them.
test: $(READY) tools
	$(if $(IN_MEMORY),TMPDIR=$(IN_MEMORY)) $(PYTEST) -q -n 6 --maxschedchunk 10 --ignore tests/real_clis -m "not faults and not package" -o tmp_path_retention_policy=failed

# The same after format, lint, types, layers and known vulnerabilities.
check: lint audit test

# Known vulnerabilities of what is installed. Without pip-audit or its database it says so.
audit: $(READY)
	@test -x $(AUDIT) || { $(BIN)/python -m venv $(VENV)/audit && $(VENV)/audit/bin/pip install -q pip-audit; } \
	  || echo "no audit: pip-audit cannot be installed here"
	@test ! -x $(AUDIT) || $(AUDIT) --path $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
	  --progress-spinner off --skip-editable

lint: $(READY)
	$(BIN)/ruff format --check src tests bench docs examples
	$(BIN)/ruff check src tests bench docs examples
	$(BIN)/mypy
	$(BIN)/lint-imports

# A hundred kills, every crash point, full disks: minutes, not seconds. It ends with one table of what
# was tried and what was lost. `make faults QUICK=1` tries each kind of fault a few times.
faults: clis
	$(if $(QUICK),CREW_FAULTS=quick CREW_FAULTS_TASKS=4) $(PYTEST) -q -n 2 --maxschedchunk 2 -m faults $(if $(QUICK),-k "test_a_run") --timeout 7200

# The real CLIs with a scripted model: Claude Code and Codex, OpenCode, Gemini CLI and those that speak
# ACP, which take seconds to start. `make clis QUICK=1` runs Claude Code and Codex alone.
clis: $(READY)
	@$(if $(QUICK),,CREW_CLIS=all) sh tests/install_tools.sh
	$(if $(IN_MEMORY),TMPDIR=$(IN_MEMORY)) $(PYTEST) -q -n 3 --maxschedchunk 2 -m "not faults$(if $(QUICK), and not clis)" tests/real_clis -o tmp_path_retention_policy=failed

# The wheel and the sdist in dist/, each installed into an empty environment and used there.
package: $(READY) tools
	$(PYTEST) -q -m package tests/package -o tmp_path_retention_policy=failed

# Figures as ratios in one run; they never fail a test.
bench: $(READY)
	$(BIN)/python -m bench

# Which kinds of repositories crew works in: one table. `KIND="SHA-256"` tries one of them, `AS=1000`
# as that user.
repositories: $(READY)
	$(BIN)/python -m bench.repositories $(if $(KIND),"$(KIND)") $(if $(AS),--user $(AS))

# The pages that are made from the code.
docs: $(READY)
	$(BIN)/python docs/generate.py

# The pictures of the terminal view, from a sample crew and the record of a demo. `RECORD=1` watches a
# new demo first.
pictures: $(READY)
	$(BIN)/python docs/pictures.py $(if $(RECORD),--record)

# The snapshots with which the tests compare the view. Look at the difference before you commit it.
snapshots: $(READY)
	cd tests && ../$(BIN)/python -m front.tui.snapshots

# What the tests use when it is there; named, not hidden, when it cannot be had.
tools:
	@sh tests/install_tools.sh

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
