# Everything runs in .venv, which is made here and made again when its ingredients change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# TensorFlow for the GPU where its driver answers.
DEVICE := $(shell nvidia-smi >/dev/null 2>&1 && echo gpu || echo cpu)
INSTALLED := $(VENV)/.installed-$(DEVICE)
BENCHMARKS ?= features prepare input_pipeline resident scale kill_prepare prepare_cluster training_step griffin_lim kill_training replicas kill_cluster speaker_encoders timing_overhead verdict
PYTEST_ARGS ?=
STUDIO ?= ./studio

CHECK_PYTHON = import sys; (3, 11) <= sys.version_info[:2] <= (3, 13) or sys.exit( \
	"MyXTTS needs Python 3.11, 3.12 or 3.13, and %s is %d.%d: name another one, as in " \
	"make venv PYTHON=python3.12" % (sys.executable, *sys.version_info[:2]))

.PHONY: help venv test test-fast lint reference docs wheel demo demo-full studio bench drill clean

help:
	@echo "make demo       install, make the built-in corpus, train on it, speak unseen sentences, and report"
	@echo "make demo-full  that, HiFi-GAN too, and clones of voices never heard, of a model of 144 (about an hour)"
	@echo "make studio     install, and open the studio on the built-in corpus: record, train, compare, speak"
	@echo "make test       ruff, mypy, pytest and its coverage; make test PYTEST_ARGS=tests/config runs a part"
	@echo "make test-fast  the tests that need no TensorFlow, in about a minute"
	@echo "make lint       ruff and mypy alone"
	@echo "make docs       the pages in docs/, into build/docs; a dead link fails"
	@echo "make reference  write docs/reference/ from the tables of flags and settings"
	@echo "make wheel      the package, into dist/"
	@echo "make bench      what benchmarks/ measures; make bench BENCHMARKS=features for one of them"
	@echo "make drill      kills, flips, full disks and hostile input, by the thousand (about an hour)"
	@echo "make venv       install into $(VENV) (for: $(DEVICE))"
	@echo "make clean      remove what was built, but neither $(VENV) nor any data"

venv: $(INSTALLED)

# A .venv without a working pip, or of another Python, is made anew.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c '$(CHECK_PYTHON)'
	@$(BIN)/python -c '$(CHECK_PYTHON)' 2>/dev/null && $(BIN)/python -m pip --version >/dev/null 2>&1 \
		|| $(PYTHON) -m venv --clear $(VENV)
	@echo 'installing into $(VENV), which takes some minutes the first time'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(DEVICE),demo,dev,docs]'
	@rm -f $(VENV)/.installed-*
	@touch $@

# Prints which share of the package's lines the tests run; build/coverage.txt has it by file.
test: lint
	$(BIN)/python -m pytest -p tests.helpers.line_coverage -n 2 --dist loadfile $(PYTEST_ARGS)

test-fast: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow' $(PYTEST_ARGS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reference: $(INSTALLED)
	$(BIN)/python tools/reference.py

# Not --quiet: it would hide the warnings that --strict counts.
docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict

# Setuptools would pack what an earlier build left.
wheel: $(INSTALLED)
	rm -rf build/lib build/bdist.*
	$(BIN)/python -m build --wheel --no-isolation

demo: $(INSTALLED)
	$(BIN)/myxtts demo

studio: $(INSTALLED)
	$(BIN)/myxtts studio $(STUDIO) --demo --open

demo-full: $(INSTALLED)
	$(BIN)/myxtts demo --hifigan
	$(BIN)/myxtts demo-voices

bench: $(INSTALLED)
	set -e; for name in $(BENCHMARKS); do echo; $(BIN)/python benchmarks/$$name.py; done

drill: $(INSTALLED)
	$(BIN)/python benchmarks/drill.py --share 1

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
