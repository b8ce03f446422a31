# make demo   set everything up, run the stock replay: a table of matches, a picture, and the same through Spark
# make test   set everything up, check the style and the types, run the whole suite
#             (one file: make test TESTS=tests/test_docs.py; the long setting: make test TESTS=--nightly)
# make check  a quick look, in about three minutes: without Spark, servers, browsers and what is long, with few examples
# make draw   draw fresh random examples for SECONDS=600; a counter-example is written down as a test file
# make mutants FILES=rules/etalis_rules/x.py TESTS=tests/compiler  change one operator at a time: do the tests notice?
# make test-kafka  fetch a Kafka broker and Spark's connector with Maven, run the tests with them
# make test-services  install PostgreSQL, Redis, mosquitto and an S3 server, run the tests of the connectors with them
# make test-spark-versions  the core of the Spark tests and 60 drawn programs with older PySpark (SPARK_VERSIONS=4.0 for one)
# make test-lakes  fetch Delta and Iceberg with Maven, run the tests with their tables, with the PySpark that both are for
# make docs   build the documentation as a site, in out/site, and check its links
# make release  build wheel and sdist, a lock file and an SBOM, in out/release: all but the upload
# make bench  set everything up, measure the engine
# make bench-check  compare the engine's times with those of hand-written loops, and the ratios with the kept ones
# make bench-peers  fetch Esper, Siddhi and Flink with Maven, and DuckDB, measure them beside the engine
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTS :=
AXE := out/node_modules/axe-core/axe.min.js
SECONDS := 600
SPARK_VERSIONS := 4.0 4.1 4.2
LAKES := out/spark-4.1
RELEASE := out/release

# A worker for each core, and two more, as some wait: for Spark's JVM, for a process, for a clock.  Each takes up to two
# gigabytes.
WORKERS = $$(n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 8 ? n + 2 : 10)))
SHARED = --no-loadscope-reorder --numprocesses $(WORKERS)

# What make check leaves out: Spark, servers, browsers and brokers; what starts processes of its own or builds packages;
# texts, patterns and backgrounds made to be large; what draws or counts hundreds of programs; replays of whole data sets.
LONG := tests/spark tests/containers tests/kafka tests/durable tests/engine/cores tests/replays \
	$(addprefix tests/cli/test_,$(addsuffix .py,cores live_mapping live_time pipes process serve spark terminal)) \
	$(addprefix tests/test_,$(addsuffix .py,benchmarks docs ep_benchmarks extras notebook packaging)) \
	$(addprefix tests/compiler/test_,$(addsuffix .py,long_chains parser_robust)) \
	$(addprefix tests/engine/test_,$(addsuffix .py,bands large_queries limits planning_work)) \
	$(addprefix tests/executors/columns/test_,$(addsuffix .py,banded_joins division share window_answers window_programs)) \
	tests/knowledge/test_knowledge_owlrl.py

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

.PHONY: demo test check draw mutants kernels classes test-kafka test-services test-spark-versions test-lakes lint docs release bench \
	bench-check bench-peers \
	java clean

# A table and a picture; then the same through Spark, compared.  Without Java it says so and goes on.
demo:
	@$(MAKE) --no-print-directory $(READY)
	@mkdir -p out
	@engine=local; $(CHECK_JAVA) && engine=both; \
	echo "etalis replay stock --engine $$engine --plot out/stock.png"; \
	$(BIN)/etalis replay stock --engine $$engine --plot out/stock.png

# Files named in TESTS run as they are.  Else workers share all tests, style and types among them: two sessions of Spark
# in two of them, file by file in the others.
test: java $(READY)
	@$(GET_AXE)
ifneq ($(filter-out -%,$(TESTS)),)
	@$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest $(TESTS)
else
	@$(MAKE) --no-print-directory --jobs=2 kernels classes
	$(BIN)/python -m pytest $(SHARED) $(TESTS)
endif

# The workers would compile the same loops at the same time, and each checkout those of another.
kernels: $(READY)
	@$(BIN)/python -m tests.kernels_cache

# Each JVM of Spark would read the same classes anew.
classes: java $(READY)
	@$(BIN)/python -m tests.spark.java

# Quick: no Java is needed; each drawn test draws a twelfth of its examples, and of many cases every third is tried.
check: kernels
	$(BIN)/python -m pytest $(SHARED) --few $(addprefix --ignore=,$(LONG)) $(TESTS)

draw: kernels
	$(BIN)/python -m tests.fresh --seconds $(SECONDS) $(TESTS)

mutants: kernels
	$(BIN)/python -m tests.mutants $(FILES) --tests $(TESTS) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

test-kafka: java $(READY)
	$(BIN)/python -m tests.kafka.artifacts
	$(BIN)/python -m pytest -rs --kafka tests/kafka tests/spark/test_kafka.py $(TESTS)

# The services of the system's packages; the tests start their own, on loopback.
test-services: $(READY)
	@command -v apt-get > /dev/null || \
		{ echo "Install PostgreSQL, Redis and mosquitto: this target knows apt-get only" >&2; false; }
	$$([ "$$(id -u)" = 0 ] || echo sudo) apt-get install --yes --no-install-recommends postgresql redis-server mosquitto
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'moto[server]'
	PATH="$(BIN):$$PATH" $(BIN)/python -m pytest -rs tests/durable $(TESTS)

# Each version has an environment of its own, of a gigabyte, and each kind of session a process.
test-spark-versions: java $(SPARK_VERSIONS:%=out/spark-%/.ready)
	@for version in $(SPARK_VERSIONS); do for kind in classic connect; do \
	echo "PySpark $$version, $$kind:"; log=out/spark-$$version/$$kind.log; \
	for module in core drawn; do \
	out/spark-$$version/bin/python -m tests.spark.$$module $$kind 2> $$log || { tail -n 40 $$log >&2; exit 1; }; \
	done; \
	done; done

# The environment is one of those above.
test-lakes: java $(LAKES)/.ready
	$(LAKES)/bin/python -m tests.lakes.artifacts
	$(LAKES)/bin/python -m pytest -rs tests/lakes $(TESTS)

out/spark-%/.ready: pyproject.toml
	$(PYTHON) -m venv --clear out/spark-$*
	out/spark-$*/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[connect,columns]' \
		'pyspark~=$*.0' pytest hypothesis
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# What is installed with every extra is the lock file, for pip install --constraint, and what the SBOM lists.
release: $(READY)
	rm -rf $(RELEASE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	$(BIN)/python -m build --outdir $(RELEASE) .
	$(PYTHON) -m venv $(RELEASE)/env
	wheel=$$(echo $(RELEASE)/*.whl) && $(RELEASE)/env/bin/python -m pip install --quiet --disable-pip-version-check "$$wheel[all]"
	$(RELEASE)/env/bin/python -m pip freeze --exclude etalis-py > $(RELEASE)/constraints.txt
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file $(RELEASE)/etalis-py.cdx.json $(RELEASE)/env/bin/python
	rm -rf $(RELEASE)/env
	cd $(RELEASE) && sha256sum * > SHA256SUMS

bench: $(READY)
	$(BIN)/python -m benchmarks.engine

bench-check: kernels
	$(BIN)/python -m benchmarks.check

bench-peers: java $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check duckdb polars
	cd benchmarks/peers/java && mvn --quiet --batch-mode compile dependency:build-classpath -Dmdep.outputFile=target/classpath
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.peers.many
	$(BIN)/python -m benchmarks.scenarios

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
