# make demo   set everything up, run the stock replay: a table of matches, a picture, and the same through Spark
# make test   set everything up, check the style and the types, run the whole suite
#             (one file: make test TESTS=tests/test_docs.py; the long setting: make test TESTS=--nightly)
# make test-kafka  fetch a Kafka broker and Spark's connector with Maven, run the tests with them
# make docs   build the documentation as a site, in out/site, and check its links
# make bench  set everything up, measure the engine
# make bench-peers  fetch Esper, Siddhi and Flink with Maven, measure them beside the engine
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTS :=
AXE := out/node_modules/axe-core/axe.min.js
SPARK := tests/spark
SECOND := tests/cli tests/containers tests/knowledge tests/streams tests/windows

# The tests start hundreds of processes: modules are compiled once and not by each of them, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

# The first Python that is new enough.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

# The version of Java that Spark would use; empty where there is none.
FIND_JAVA = "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
ADVICE = install the package openjdk-17-jre-headless (Debian, Ubuntu), java-17-openjdk-headless (Fedora) or openjdk@17 (Homebrew)

CHECK_JAVA = version=$$($(FIND_JAVA)); [ "$${version:-0}" -ge 17 ] || \
	{ echo "Spark needs Java 17 or newer, found $${version:-none}: $(ADVICE)" >&2; false; }

# What looks for obstacles on the server's page; where npm or a browser is missing, its tests are skipped and say so.
GET_AXE = if command -v npm && command -v chromium; then $(MAKE) $(AXE) || true; fi > /dev/null

.PHONY: demo test test-kafka lint docs bench bench-peers java clean

# A table and a picture; then the same through Spark, compared.  Without Java it says so and goes on.
demo:
	@$(MAKE) --no-print-directory $(READY)
	@mkdir -p out
	@engine=local; $(CHECK_JAVA) && engine=both; \
	echo "etalis replay stock --engine $$engine --plot out/stock.png"; \
	$(BIN)/etalis replay stock --engine $$engine --plot out/stock.png

# Files named in TESTS run as they are.  Else three parts of about the same length run beside each other: the tests of
# Spark; style, types and the tests in SECOND; all others.
test: java $(READY)
	@$(GET_AXE)
ifneq ($(filter-out -%,$(TESTS)),)
	@$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest $(TESTS)
else
	@mkdir -p out; echo "style, types and the tests in $(SECOND) $(SPARK) run beside the others; their reports come last"; \
	$(BIN)/python -m pytest $(SPARK) $(TESTS) > out/tests-spark.log 2>&1 & spark=$$!; \
	($(MAKE) --no-print-directory lint && exec $(BIN)/python -m pytest $(SECOND) $(TESTS)) > out/tests-second.log 2>&1 & second=$$!; \
	trap "kill $$spark $$second" INT TERM; \
	$(BIN)/python -m pytest $(addprefix --ignore=,$(SPARK) $(SECOND)) $(TESTS); others=$$?; \
	wait $$second; second=$$?; wait $$spark; spark=$$?; cat out/tests-second.log out/tests-spark.log; \
	[ $$others -eq 0 ] && [ $$second -eq 0 ] && [ $$spark -eq 0 ]
endif

test-kafka: java $(READY)
	$(BIN)/python -m tests.kafka.artifacts
	$(BIN)/python -m pytest -rs --kafka tests/kafka tests/spark/test_kafka.py $(TESTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(READY)
	$(BIN)/python -m benchmarks.engine

bench-peers: java $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check duckdb polars
	cd benchmarks/peers/java && mvn --quiet --batch-mode compile dependency:build-classpath -Dmdep.outputFile=target/classpath
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.peers.many

$(AXE):
	npm install --silent --no-audit --no-fund --fetch-retries=0 --prefix out axe-core@4

java:
	@$(CHECK_JAVA)

# Made once; made anew when pyproject.toml changes.
$(READY): pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer is needed: install it, or name it: make PYTHON=…" >&2; exit 1; fi
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $(READY)

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
