# make run · make test · make check: what each does is in CONTRIBUTING.md.
PYTHON ?= python3
UV = .tools/bin/uv
# uv uses the folder of wheels and the certificate that pip is configured with.
export UV_FIND_LINKS := $(PIP_FIND_LINKS)
# Without such a folder, take torch's CPU build.
ifeq ($(PIP_FIND_LINKS),)
export UV_TORCH_BACKEND ?= cpu
endif
ifneq ($(PIP_CERT),)
export SSL_CERT_FILE ?= $(PIP_CERT)
endif
export UV_PYTHON_DOWNLOADS = never
# Some machines set it. Without cached bytecode each of the thousands of processes that the tests start compiles all it
# imports: the daemon starts in twice the time, torch too.
unexport PYTHONDONTWRITEBYTECODE
BIN = .venv/bin
# Workers of whole libraries, and all that have an environment and a suite of their own.
LIBRARIES = balrog ray search stable_baselines3 tianshou xuance
WORKERS = cleanrl dreamer eval llm $(LIBRARIES)
# The number of parallel test processes.
JOBS ?= 2
# More options for pytest. `make test` runs on shared machines: there a failed test is repeated once and listed, and so are
# the slowest ones.
ONCE_MORE =
# One at a time: all of them build in the SDK's folder.
EDITABLE = flock .tools $(UV) pip install -q --no-deps
COMPILE = $(UV) pip compile -q --no-emit-index-url --no-emit-find-links --generate-hashes --python-version 3.11 --no-header

.PHONY: run gui test test-setup test-core test-flow test-gui test-workers types-workers test-observe test-jax test-all check debian-gui debian-slurm faults bench setup dist lock proto docs clean

setup: .venv/.ready

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "MOSAIC needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv .tools || { echo "python3-venv is missing. Install it with: apt-get install python3-venv"; exit 1; }
	.tools/bin/pip install -q "uv==0.13.7"

# Not -q: the first install takes a while, and uv shows its progress.
.venv/.ready: $(UV) VERSION requirements/dev.txt pyproject.toml sdk/pyproject.toml workers/toy_worker/pyproject.toml
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv
	$(UV) pip sync --python $(BIN)/python --compile-bytecode requirements/dev.txt
	$(EDITABLE) --python $(BIN)/python --no-build-isolation -e . -e sdk -e workers/toy_worker
	@touch $@

# Gymnasium, ALE, MiniGrid and PettingZoo for FastLane's tests; the platform itself uses none of them.
.venv-frames/.ready: $(UV) requirements/frames.txt
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-frames
	$(UV) pip sync -q --python .venv-frames/bin/python requirements/frames.txt
	@touch $@

# The libraries that the observer's tests listen to. They have no mosaic_sdk, as a user's environment has none.
.venv-observe/.ready: $(UV) requirements/observe.txt
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-observe
	$(UV) pip sync -q --python .venv-observe/bin/python --compile-bytecode requirements/observe.txt
	@touch $@

# The platform's environment with the window. Not .venv itself: `make run` needs no window.
.venv-gui/.ready: $(UV) VERSION requirements/gui.txt pyproject.toml sdk/pyproject.toml workers/toy_worker/pyproject.toml
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-gui
	$(UV) pip sync -q --python .venv-gui/bin/python --compile-bytecode requirements/gui.txt
	$(EDITABLE) --python .venv-gui/bin/python --no-build-isolation -e . -e sdk -e workers/toy_worker
	@touch $@

# What the tests compare the statistics with.
.venv-rliable/.ready: $(UV) requirements/rliable.txt
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-rliable
	$(UV) pip sync -q --python .venv-rliable/bin/python requirements/rliable.txt
	@touch $@

# The tests' own Ray cluster. The platform speaks to Ray by HTTP and does not import it.
.venv-ray-cluster/.ready: $(UV) requirements/ray-cluster.txt
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-ray-cluster
	$(UV) pip sync -q --python .venv-ray-cluster/bin/python --compile-bytecode requirements/ray-cluster.txt
	@touch $@

# The documentation site's own tools.
.venv-docs/.ready: $(UV) requirements/docs.txt
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-docs
	$(UV) pip sync -q --python .venv-docs/bin/python requirements/docs.txt
	@touch $@

# The environment of CleanRL's variant jax.
.venv-jax/.ready: $(UV) workers/cleanrl_worker/requirements/jax.txt workers/cleanrl_worker/pyproject.toml requirements/suite.txt sdk/pyproject.toml
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-jax
	$(UV) pip sync -q --python .venv-jax/bin/python workers/cleanrl_worker/requirements/jax.txt requirements/suite.txt
	$(EDITABLE) --python .venv-jax/bin/python -e sdk -e workers/cleanrl_worker
	@touch $@

# A real llama.cpp server for the LLM worker's tests, and what writes a tiny model for it.
.venv-llm-server/.ready: $(UV) workers/llm_worker/tests/server/requirements.txt
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-llm-server
	$(UV) pip sync -q --python .venv-llm-server/bin/python workers/llm_worker/tests/server/requirements.txt
	@touch $@

# A worker's environment: its own lock file, and the tools that its tests need.
.venv-%/.ready: $(UV) workers/%_worker/requirements/default.txt workers/%_worker/pyproject.toml requirements/suite.txt sdk/pyproject.toml
	$(UV) venv -q --allow-existing --python $(PYTHON) .venv-$*
	$(UV) pip sync -q --python .venv-$*/bin/python workers/$*_worker/requirements/default.txt requirements/suite.txt
	$(EDITABLE) --python .venv-$*/bin/python -e sdk -e workers/$*_worker
	@touch $@

# The documentation site. Warnings are errors, and nothing is fetched from the network.
docs: setup .venv-docs/.ready
	$(BIN)/python docs/tools/pages.py build/docs
	.venv-docs/bin/sphinx-build -q -W --keep-going -c docs/tools -d build/doctrees build/docs build/site
	@echo "The documentation is ready: build/site/index.html"

# The wheels and sdists of every package. dist/*.whl is what people install; docs/howto/install.md says how.
BUILD = SOURCE_DATE_EPOCH=315532800 $(UV) build -q --no-build-isolation --python $(BIN)/python
dist: setup
	rm -rf dist
	$(BUILD) -o dist/all .
	$(BUILD) -o dist/all sdk
	$(BUILD) -o dist/all sdk/gym_gui
	for worker in workers/*_worker; do $(BUILD) -o dist/all $$worker || exit 1; done
	mkdir dist/sdist dist/workers
	mv dist/all/*.tar.gz dist/sdist
	mv dist/all/mosaic_rl-*.whl dist/all/mosaic_sdk-*.whl dist/all/mosaic_toy_worker-*.whl dist
	mv dist/all/*.whl dist/workers
	rm -rf dist/all
	cd dist && sha256sum *.whl workers/*.whl sdist/*.tar.gz > SHA256SUMS

proto: setup
	$(BIN)/python -m grpc_tools.protoc -Isrc --python_out=src --pyi_out=src --grpc_python_out=src src/mosaic/wire/mosaic.proto
	cd workers/search_worker && ../../$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. search_worker/driver.proto

lock: $(UV)
	$(COMPILE) requirements/dev.in -o requirements/dev.txt
	$(COMPILE) requirements/gui.in -o requirements/gui.txt
	$(COMPILE) requirements/frames.in -o requirements/frames.txt
	$(COMPILE) requirements/suite.in -o requirements/suite.txt
	@# Without torch's hash: its builds differ (cpu, cu128 …).
	$(COMPILE) requirements/observe.in | awk '/^torch==/ { print "torch==2.13.0"; skip = 1; next } skip && /^    --hash/ { next } { skip = 0; print }' > requirements/observe.txt
	$(COMPILE) requirements/docs.in -o requirements/docs.txt
	$(COMPILE) requirements/rliable.in -o requirements/rliable.txt
	$(COMPILE) requirements/ray-cluster.in -o requirements/ray-cluster.txt

check: setup .venv-frames/.ready .venv-gui/.ready
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q .
	$(BIN)/mypy --python-executable .venv-gui/bin/python src sdk/src
	@# The long suites are only imported: a stale name in one of them shows here, not after a quarter of an hour.
	@collected=$$($(BIN)/python -m pytest tests/flow tests/faults tests/machines --collect-only -qq) || { echo "$$collected"; exit 1; }
	$(BIN)/python -m pytest tests/unit tests/test_*.py workers/toy_worker -m "not slow" -n $(JOBS) $(ONCE_MORE)

# Everything but the tests that are marked slow. Each part can be run alone; at the end stands what each has taken.
PARTS = test-setup check test-flow test-gui test-workers
test:
	@times=""; for part in $(PARTS); do \
	  began=$$(date +%s); $(MAKE) $$part ONCE_MORE="--reruns 1 -rR --durations=10 --durations-min=5" || { printf "\n$$times$$part has failed\n"; exit 1; }; \
	  times="$$times$$(printf '%-13s %5d s' $$part $$(($$(date +%s) - began)))\n"; \
	done; printf "\n$$times"

# Every environment and Debian package of the tests. Two at a time: one installs while the other resolves or compiles.
ENVIRONMENTS = frames gui cleanrl dreamer eval llm llm-server observe ray-cluster $(LIBRARIES)
test-setup: setup debian-gui debian-slurm
	@$(MAKE) -s -j $(JOBS) $(ENVIRONMENTS:%=.venv-%/.ready)

# The platform and the SDK.
test-core: check test-flow

# Flow and fault tests, runs on a real Slurm and a real Ray. How-to pages and the search also start workers. More processes than
# cores: these tests wait for other processes a third of the time, and those of one cluster are all in one process.
MORE_JOBS = $(shell expr 2 '*' $(JOBS) + 1)
test-flow: setup debian-slurm .venv-ray-cluster/.ready .venv-frames/.ready .venv-cleanrl/.ready .venv-dreamer/.ready .venv-eval/.ready .venv-llm/.ready .venv-llm-server/.ready .venv-search/.ready
	$(BIN)/python -m pytest tests/machines tests/flow tests/faults -m "not slow" -n $(MORE_JOBS) --dist loadgroup $(ONCE_MORE)

# A test that waits inside Qt never sees the signal of pytest-timeout: a thread ends its process and prints all stacks,
# and faulthandler does so if even that thread gets no turn.
UNSTUCK = -o timeout_method=thread -o faulthandler_timeout=180
# The window: offscreen, and in a real window on a screen without a monitor.
test-gui: setup debian-gui .venv-gui/.ready .venv-cleanrl/.ready .venv-eval/.ready
	.venv-gui/bin/python -m pytest tests/gui -m "not slow" -n $(JOBS) --dist loadgroup $(UNSTUCK) $(ONCE_MORE)

# Debian packages of the window and its tests, and of the tests' Slurm: installed for root; named for others, and then it
# is an error.
debian-gui debian-slurm: debian-%:
	@missing=""; for package in $$(sed 's/#.*//' requirements/$*-debian.txt); do dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q ' installed$$' || missing="$$missing $$package"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then apt-get update -q && apt-get install -y -q --no-install-recommends $$missing; \
	else echo "Debian packages are missing (requirements/$*-debian.txt). Install them with: sudo apt-get install --no-install-recommends$$missing"; exit 1; fi

# A worker: its quick suite, in its own environment and in one process: a second one would import the library once more.
# One target for each: suite-ray, suite-cleanrl …
suite-balrog suite-llm: .venv-llm-server/.ready
suite-%: setup .venv-%/.ready
	cd workers/$*_worker && ../../.venv-$*/bin/python -m pytest -q tests -m "not slow" -n 0 $(ONCE_MORE)

# The types of all workers, one after the other: they share mypy's cache.
types-workers: setup $(WORKERS:%=.venv-%/.ready)
	$(BIN)/mypy workers/toy_worker/toy_worker
	MYPYPATH=workers/dreamer_worker:sdk/src $(BIN)/mypy --python-executable .venv-dreamer/bin/python workers/dreamer_worker/dreamer_worker
	MYPYPATH=workers/llm_worker:sdk/src $(BIN)/mypy --python-executable .venv-llm/bin/python workers/llm_worker/llm_worker
	@set -e; for worker in cleanrl eval $(LIBRARIES); do echo "types of $$worker"; \
	  $(BIN)/mypy --config-file workers/$${worker}_worker/pyproject.toml --python-executable .venv-$$worker/bin/python workers/$${worker}_worker/$${worker}_worker; done

# The workers: types, and their own suites in their own environments, as many at the same time as there are cores; the
# longest come first. -O: each target's output in one piece, when it has ended.
test-workers: setup
	@$(MAKE) -O -k -j $(JOBS) suite-cleanrl suite-dreamer test-observe types-workers suite-eval suite-llm $(LIBRARIES:%=suite-%) ONCE_MORE="$(ONCE_MORE)"

# Unmodified scripts of many libraries, observed.
test-observe: setup .venv-observe/.ready
	$(BIN)/python -m pytest tests/observe -m "not slow" -n 0 $(ONCE_MORE)

# CleanRL's variant jax: its environment, its scripts, and what needs jax.
test-jax: .venv-jax/.ready
	cd workers/cleanrl_worker && ../../.venv-jax/bin/python -m pytest -q tests/test_jax.py tests/test_all_scripts.py tests/test_registry.py -m "slow or not slow" -n $(JOBS)

test-all: setup debian-gui debian-slurm .venv-ray-cluster/.ready .venv-frames/.ready .venv-observe/.ready .venv-gui/.ready .venv-cleanrl/.ready .venv-dreamer/.ready .venv-eval/.ready .venv-llm/.ready .venv-llm-server/.ready $(LIBRARIES:%=.venv-%/.ready)
	$(BIN)/python -m pytest tests workers/toy_worker --ignore tests/gui -n $(JOBS) --dist loadgroup
	.venv-gui/bin/python -m pytest tests/gui -n $(JOBS) --dist loadgroup
	cd workers/cleanrl_worker && ../../.venv-cleanrl/bin/python -m pytest -q tests -m "slow or not slow" -n $(JOBS)
	cd workers/dreamer_worker && ../../.venv-dreamer/bin/python -m pytest -q tests -m "slow or not slow" -n $(JOBS)
	cd workers/eval_worker && ../../.venv-eval/bin/python -m pytest -q tests -m "slow or not slow" -n $(JOBS) --dist loadgroup
	cd workers/llm_worker && ../../.venv-llm/bin/python -m pytest -q tests -m "slow or not slow" -n $(JOBS)
	for worker in $(LIBRARIES); do (cd workers/$${worker}_worker && ../../.venv-$$worker/bin/python -m pytest -q tests -m "slow or not slow" -n $(JOBS)) || exit 1; done

# The demonstration: starts the daemon, trains a policy with a live view, and evaluates the result.
run: setup
	@$(BIN)/mosaic worker install cleanrl --torch cpu
	@$(BIN)/python examples/first_run.py

# The window, with its own environment. It starts the daemon if none runs.
gui: .venv-gui/.ready
	@.venv-gui/bin/mosaic gui

# The fault lab at length: random schedules of kills, stops and full disks, a soak and a fuzzer. docs/reliability.md
faults: setup
	$(BIN)/python benchmarks/faults.py --schedules 1000 --minutes 60 --seed 7
	$(BIN)/python benchmarks/adversary.py --cases 2000 --seed 7
	$(BIN)/python benchmarks/soak.py --minutes 30
	$(BIN)/python benchmarks/fuzz.py --lines 1000000 --seed 7

bench: setup .venv-frames/.ready .venv-gui/.ready .venv-observe/.ready
	$(BIN)/python benchmarks/emit.py
	$(BIN)/python benchmarks/ingest.py
	$(BIN)/python benchmarks/long_lines.py
	$(BIN)/python benchmarks/submit.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/listing.py
	$(BIN)/python benchmarks/experiments.py
	$(BIN)/python benchmarks/worker_list.py
	$(BIN)/python benchmarks/libraries.py
	SDL_VIDEODRIVER=dummy PYTHONPATH=sdk/src .venv-frames/bin/python benchmarks/fastlane.py
	.venv-gui/bin/python benchmarks/gui.py

clean:
	rm -rf .venv .venv-* .tools build dist
