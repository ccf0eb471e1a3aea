# One command for each job; each sets up what it needs first (see CONTRIBUTING.md).
# Needs git, make and Python >= 3.11; another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
ARGS ?=

BIN := $(VENV)/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
SPARK_VENV := .venv-spark
CORE_VENV := .venv-core
NATIVE := hatch_build.py build_engine.py $(wildcard src/driftgp/engine/cpp/*)
CPP := $(wildcard src/driftgp/engine/cpp/*.[ch]*) tests/engine/arithmetic.cpp
BENCH_VENV := benchmarks/.venv
LOCK_VENV := .cache/lock
UV_VERSION := 0.13.7
WHEELS_VENV := .cache/wheels
ZIG_VERSION := 0.15.2
LIEF_VERSION := 1.0.0
LOWEST := .cache/lowest

# BLAS gets one thread, since the workers of pytest-xdist share the cores already; so does JAX, for the rivals.
TEST_ENV := \
	JAX_PLATFORMS=cpu \
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	MPLBACKEND=agg

SPARK_ENV := SPARK_LOCAL_IP=127.0.0.1

# Folders of tests whose subjects need numpy and scipy alone.
CORE_TESTS := $(addprefix tests/, base kernels gp models engine predictions members wrappers stream online alarms)

.DEFAULT_GOAL := help
.PHONY: help demo demo-spark reproduce test test-all test-core test-pythons test-sanitised fuzz soak test-spark check format format-check lint types imports doctest pictures docs bench lock wheels check-wheels emulators test-lowest clean

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- what a user runs

demo: $(VENV)/.demo ## the toy stream and bike rentals (ARGS="--only bikes")
	@$(BIN)/driftgp demo $(ARGS)

# Load and sales need DRIFTGP_DATA; further: ARGS="toy --seeds 50 --methods AGP".
reproduce: $(VENV)/.dev ## the paper's tables and figures (ARGS="toy --seeds 50")
	$(TEST_ENV) $(BIN)/python -m experiments $(if $(ARGS),$(ARGS),all)

demo-spark: $(SPARK_VENV)/.made ## a stream of files on Spark; needs Java 17
	@$(SPARK_VENV)/bin/python examples/spark_stream.py $(ARGS)

test: $(VENV)/.dev ## the quick tests (ARGS="-k window")
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-all: $(VENV)/.dev ## the slow tests too
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "slow or not slow" $(ARGS)

test-core: $(CORE_VENV)/.made ## the core's tests, with numpy and scipy alone
	$(TEST_ENV) $(CORE_VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(CORE_TESTS) $(ARGS)

test-pythons: ## the same by each declared Python on this machine
	pythons=$$($(PYTHON) -m tools.interpreters) || exit; for python in $$pythons; do \
		version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])') && \
		$(MAKE) test-core PYTHON=$$python CORE_VENV=.cache/core-$$version || exit; done

# The library compiled with a sanitiser, in a copy of the package: what is installed stays as it is. Python itself is not
# compiled with it, so that the sanitiser is loaded before it, and leaks, which would be those of Python, are not looked for.
SANITISERS ?= address thread
SANITISED := .cache/sanitised
SANITISED_TESTS := tests/engine tests/members tests/models/test_records.py tests/wrappers
SANITISED_FLAGS_address := -DDRIFTGP_SEALED -fsanitize=address,undefined -fno-sanitize-recover=undefined
SANITISED_FLAGS_thread := -fsanitize=thread
# One of them: SANITISERS=thread.
test-sanitised: $(addprefix sanitised-, $(SANITISERS)) ## the C++ engine under ASan, UBSan and TSan
sanitised-%: $(VENV)/.dev
	rm -rf $(SANITISED)/$* && mkdir -p $(SANITISED)/$* && cp -r src build_engine.py $(SANITISED)/$*
	cd $(SANITISED)/$* && CXX="c++ $(SANITISED_FLAGS_$*) -g" $(CURDIR)/$(BIN)/python -c \
		"import build_engine as b, pathlib as p; b.build(p.Path('src/driftgp/engine/cpp').resolve(), p.Path('src/driftgp/engine/libdriftgp.so').resolve(), b.here())"
	export LD_PRELOAD="$$(c++ -print-file-name=lib$(if $(filter thread,$*),tsan,asan).so) $$(c++ -print-file-name=libstdc++.so.6)" \
		ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=1:exitcode=66:suppressions=$(CURDIR)/tests/fuzz/tsan.supp PYTHONPATH=$(SANITISED)/$*/src $(TEST_ENV); \
	$(BIN)/python -m pytest $(SANITISED_TESTS) $(ARGS) \
		&& $(BIN)/python -m tests.fuzz states stacks interrupts --cases 1000 --longest 120 --seconds 1800

# By seed; one case again: ARGS="states --seed 7 --only 123".
fuzz: $(VENV)/.dev ## hostile states, files, streams (ARGS="states --seed 7")
	$(TEST_ENV) $(BIN)/python -m tests.fuzz $(ARGS)

soak: $(VENV)/.dev ## a million hostile steps (ARGS="--steps 100000")
	$(TEST_ENV) $(BIN)/python -m tests.fuzz.soak $(ARGS)

test-spark: $(SPARK_VENV)/.made ## the tests of the Spark jobs; needs Java 17
	$(TEST_ENV) $(SPARK_ENV) PYSPARK_PYTHON="$(CURDIR)/$(SPARK_VENV)/bin/python" \
		$(SPARK_VENV)/bin/python -m pytest --doctest-modules src/driftgp/spark tests/spark $(ARGS)

bench: $(BENCH_VENV)/.made ## error and cost beside others (QUICK=1: 5 minutes; FULL=1: hours)
	$(BENCH_VENV)/bin/python -m benchmarks $(if $(QUICK),--quick) $(if $(FULL),--full) $(ARGS)

# ---- what is released (RELEASING.md)

# The first takes minutes; ARGS=win_amd64 makes that one alone.
wheels: $(WHEELS_VENV)/.made ## the sdist and the wheels into dist/ (ARGS=win_amd64)
	$(WHEELS_VENV)/bin/python -m tools.wheels --workers $(WORKERS) $(ARGS)

check-wheels: $(WHEELS_VENV)/.made ## look into dist/, run what this machine can run
	$(WHEELS_VENV)/bin/python -m tools.check_wheels $(ARGS)

# Packages of Debian 12, with its Python. Those of other systems are unpacked into a folder and not installed: some programs
# take a system that has musl's loader for one without glibc.
EMULATED := .cache/emulated
ARM64 := python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libexpat1 libffi8 libgcc-s1 libstdc++6 zlib1g
# On Debian 12, as root: what `make check-wheels` runs other platforms' libraries with.
emulators:
	dpkg --add-architecture arm64
	apt-get update --quiet
	apt-get install --quiet --yes qemu-user-static wine64
	rm -rf $(EMULATED) && mkdir -p $(EMULATED)/arm64 $(EMULATED)/musl
	cd $(EMULATED)/arm64 && apt-get download --quiet $(addsuffix :arm64,$(ARM64))
	cd $(EMULATED)/musl && apt-get download --quiet musl:amd64 musl:arm64
	for package in $(EMULATED)/*/*.deb; do dpkg -x $$package $$(dirname $$package) && rm $$package || exit; done

# The core, then each extra: the lowest versions that pyproject.toml allows, and the tests of what needs them. Those of extras
# also need tables of polars and pandas, and data of scikit-learn. Old libraries call what their newest dependencies deprecate,
# and PySpark 4.1 leaves sockets open: neither is an error here.
OLD_ONES := $(addprefix -W default::, DeprecationWarning ResourceWarning pytest.PytestUnraisableExceptionWarning)
EXTRA ?= core frames cli compare sklearn river skpro sktime rivals spark
TESTS_core := $(CORE_TESTS)
TESTS_cli := tests/cli tests/plots tests/tables
TESTS_compare := tests/comparison
TESTS_frames := tests/stream
TESTS_rivals := tests/rivals
TESTS_spark := tests/spark
UV_INSTALL = $(LOCK_VENV)/bin/uv pip install --quiet --python $(LOWEST)/$*/bin/python
test-lowest: $(addprefix lowest-, $(EXTRA)) ## tests with the lowest versions allowed (EXTRA=river)
lowest-%: $(LOCK_VENV)/.uv-$(UV_VERSION)
	$(PYTHON) -m venv --clear $(LOWEST)/$*
	$(LOCK_VENV)/bin/uv pip compile --quiet --upgrade --resolution lowest-direct --python-version 3.11 --no-header \
		$(addprefix --extra , test $(if $(filter core,$*),,$* cli river sklearn)) --output-file $(LOWEST)/$*.txt $(LOCK_INPUT)
	$(UV_INSTALL) --requirement $(LOWEST)/$*.txt
	$(UV_INSTALL) --no-deps --no-build-isolation --editable .
	$(TEST_ENV) $(SPARK_ENV) PYSPARK_PYTHON=$(CURDIR)/$(LOWEST)/$*/bin/python $(LOWEST)/$*/bin/python -m pytest \
		$(if $(filter spark,$*),,-n $(WORKERS) --dist worksteal) $(OLD_ONES) \
		$(or $(TESTS_$*),tests/adapters/test_$*.py) $(ARGS)

# ---- the one command that checks a change, and its parts

check: format-check lint types imports doctest docs ## all of format-check lint types imports doctest docs

format: $(VENV)/.dev ## rewrite the code in the house format
	$(BIN)/clang-format -i $(CPP)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix --exit-zero --quiet

format-check: $(VENV)/.dev
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/ruff format --check

lint: $(VENV)/.dev
	$(BIN)/ruff check

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	PYTHONPATH=. $(BIN)/lint-imports --cache-dir .cache/import-linter

# Those of Spark: make test-spark.
doctest: $(VENV)/.dev ## the examples in docstrings, README.md and docs/
	$(TEST_ENV) $(BIN)/python -m pytest --quiet --doctest-modules --doctest-glob='*.md' --ignore=src/driftgp/spark \
		src experiments README.md docs

pictures: $(VENV)/.dev ## draw the pictures of the docs anew
	$(BIN)/python -m benchmarks.pictures docs/images

docs: $(VENV)/.dev ## build the documentation site, strictly, into site/
	@if [ -f mkdocs.yml ]; then NO_MKDOCS_2_WARNING=1 REPOSITORY_URL="$$(git remote get-url origin 2>/dev/null | sed -n 's|\.git$$||;/^https/p')" \
		$(BIN)/mkdocs build --strict --quiet; else echo "no mkdocs.yml: no site to build"; fi

# ---- environments: made once, renewed when a lock or pyproject.toml changes

lock: $(LOCK_VENV)/.uv-$(UV_VERSION) ## renew the locks of dependencies (UPGRADE=1: newest)
	$(COMPILE) --output-file requirements/dev.lock $(LOCK_INPUT) \
		--extra dev --extra cli --extra frames --extra compare --extra holidays --extra sklearn --extra river --extra skpro --extra sktime --extra docs
	$(COMPILE) --output-file requirements/demo.lock $(LOCK_INPUT) \
		--extra cli --constraint requirements/dev.lock
	$(COMPILE) --output-file requirements/core.lock $(LOCK_INPUT) \
		--extra test --constraint requirements/dev.lock
	$(COMPILE) --output-file requirements/spark.lock $(LOCK_INPUT) \
		--extra spark --extra test --constraint requirements/demo.lock
	$(COMPILE) --output-file benchmarks/requirements.lock $(LOCK_INPUT) benchmarks/requirements.in \
		--extra cli --extra rivals --extra sklearn --extra river --constraint requirements/dev.lock \
		--override benchmarks/overrides.txt --no-emit-package torch

# One version of everything for all platforms and Pythons; no index, host or path ends up in the files.
COMPILE = $(LOCK_VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--no-emit-index-url --no-emit-find-links --no-emit-build-options --annotation-style line \
	--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)
LOCK_INPUT = pyproject.toml requirements/build.in

define make_venv
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("driftgp needs Python >= 3.11, but \
	$(PYTHON) is %d.%d.%d. Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" % tuple(v[:3]))' \
	|| { command -v $(PYTHON) >/dev/null || echo "no $(PYTHON) here: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; }
	@echo "making the environment $(@D): a minute or two, this once" >&2
	@$(PYTHON) -m venv --clear $(@D)
endef

# The engine is compiled while pip fetches. The package itself goes in last, editable, with the engine that is there now,
# by the locked hatchling and not by one fetched anew.
define install
	@$(PYTHON) build_engine.py 2>/dev/null & $(@D)/bin/python $(PIP_INSTALL) $(addprefix --requirement ,$(filter %.lock,$^)) \
		$(1); pip=$$?; wait; exit $$pip
	@$(@D)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(VENV)/.made:
	$(make_venv)
	@touch $@

$(VENV)/.demo: requirements/demo.lock pyproject.toml $(NATIVE) | $(VENV)/.made
	$(install)

$(VENV)/.dev: requirements/dev.lock pyproject.toml $(NATIVE) | $(VENV)/.made
	$(install)
	@touch $(VENV)/.demo

$(CORE_VENV)/.made: requirements/core.lock pyproject.toml $(NATIVE)
	$(make_venv)
	$(install)

$(SPARK_VENV)/.made: requirements/spark.lock pyproject.toml $(NATIVE)
	$(make_venv)
	$(install)

# Without dependencies: the lock has them all, and those of torch would be gigabytes (see benchmarks/overrides.txt).
$(BENCH_VENV)/.made: benchmarks/requirements.lock benchmarks/torch.lock pyproject.toml $(NATIVE)
	$(make_venv)
	$(call install,--no-deps)

$(LOCK_VENV)/.uv-$(UV_VERSION):
	$(make_venv)
	@$(@D)/bin/python $(PIP_INSTALL) uv==$(UV_VERSION)
	@touch $@

$(WHEELS_VENV)/.made: requirements/core.lock
	$(make_venv)
	@$(@D)/bin/python $(PIP_INSTALL) --constraint requirements/core.lock hatchling ziglang==$(ZIG_VERSION) lief==$(LIEF_VERSION)
	@touch $@

clean: ## remove environments, caches and built files
	rm -rf $(VENV) $(CORE_VENV) $(SPARK_VENV) $(BENCH_VENV) .cache .hypothesis build dist site
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f src/driftgp/engine/libdriftgp.* src/driftgp/engine/driftgp.dll*
