# make eval                      the main job on the embedded default; prints where the report is
# make eval METHOD=simplestream ARGS='-p limit 2'
# make test                      everything that needs no accelerator
# make test-vllm                 the tiny checkpoint served by vLLM, in an environment of its own
# make missing                   the commands that the papers' tables still need
# make lab                       JupyterLab on the notebooks
# PYTHON=/path/to/python         use an environment that is there; installs nothing

METHOD ?= fluxmem
ARGS ?=
SYSTEM_PYTHON ?= python3
export OMP_NUM_THREADS ?= 1

ifeq ($(origin PYTHON), undefined)
PYTHON := .venv/bin/python
READY := .venv/.installed
endif

.PHONY: eval test test-vllm test-slow lint missing lab clean

eval: $(READY)
	@told=$$(mktemp) && trap 'rm -f "$$told"' EXIT && export BENCH_REPORTED="$$told"; \
	$(PYTHON) -m papermill notebooks/03_eval.ipynb outputs/03_eval-$(METHOD).ipynb -p method $(METHOD) $(ARGS) --no-progress-bar; \
	code=$$?; sed 's/^/report: /' "$$told"; exit $$code

test: lint
	$(PYTHON) -m pytest -n 2 --dist loadfile
	$(PYTHON) -m pytest -p no:cacheprovider --nbval-lax --nbval-cell-timeout 300 notebooks

test-vllm:
	$(SYSTEM_PYTHON) bench_lib/install.py .venv-vllm --vllm
	.venv-vllm/bin/python -m pytest -s tests/served
	.venv-vllm/bin/python tests/served/passed.py record

test-slow: $(READY)
	$(PYTHON) -m pytest --slow

lint: $(READY)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy bench_lib
	$(PYTHON) -c 'from importlinter.cli import lint_imports_command as check; check()' --no-cache
	$(PYTHON) tests/dead.py

missing: $(READY)
	@$(PYTHON) -m bench_lib missing

lab: $(READY)
	$(PYTHON) -m jupyter lab notebooks

.venv/.installed: pyproject.toml requirements.lock requirements-cuda12.lock
	$(SYSTEM_PYTHON) bench_lib/install.py .venv

clean:
	rm -rf outputs/runs outputs/cache outputs/09_compare-* outputs/06_ablations-* outputs/08_streamarena-* outputs/*.ipynb outputs/*.html
