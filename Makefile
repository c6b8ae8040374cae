# ringfold: `make run` and `make test` need nothing but a Rust toolchain and a C linker.

ROWS  ?= 10000000
SIZE  ?= 1000
KEYS  ?=
FLAGS ?=
BENCH ?=
FUZZ_RUNS ?= 20000000
FUZZ_SHORT_RUNS ?= 8000
MINUTES ?= 30
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
# A processor that none of the vector kernels are for.
OTHER := aarch64-unknown-linux-gnu
DATA  := data/measurements-$(ROWS)$(if $(KEYS),-$(KEYS)-keys).txt
BIN   := target/release/ringfold
MSRV  := 1.89

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-python wheel soak lint doc bench bench-alloc bench-grid bench-jobs bench-ladder bench-pair bench-partials fuzz fuzz-short asan tsan miri mutants deny deny-offline build static package package-check package-twice test-aarch64 emulated toolchain clean

help: ## What there is to make
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run: build $(DATA) ## Build, generate ROWS rows (default 10 million), aggregate them with statistics
	$(BIN) aggregate --format lines --stats $(FLAGS) $(DATA)

# The program, the library, the reader under it, and what measures.
ALL = -p ringfold -p ringfold-read -p ringfold-bench
# Those that are lean without the command line.
LEAN = -p ringfold -p ringfold-read

# What isn't built by default is tested all the same.
FEATURES = --features parquet

# Tests that skip tell why in a file, because cargo shows nothing of tests that pass.
# The same packages are named as for the tests: with others, other features are built, and all of them anew.
SUMMARY = cargo test --locked $(ALL) $(FEATURES) --quiet --test linux-tests -- \
  --ignored --exact catalogue::summary --nocapture

# Many tests wait for something: twice as many at once as there are processors.
THREADS = RUST_TEST_THREADS=$$((2 * $$(nproc)))

# All is built from the start sooner when each crate is one piece and without the lines of backtraces; `cargo test` keeps
# pieces to build again.
WHOLE = CARGO_INCREMENTAL=0 CARGO_PROFILE_TEST_CODEGEN_UNITS=1 CARGO_PROFILE_DEV_DEBUG=0 \
  RUSTC_WRAPPER=$(CURDIR)/linux-tests/compiler

test: toolchain ## All tests that this machine can run as it is; at the end what ran and what didn't
	@export RINGFOLD_SKIPS=$$(mktemp) $(WHOLE); \
	  $(THREADS) cargo test --locked $(ALL) $(FEATURES) --no-fail-fast; status=$$?; \
	  $(SUMMARY) || status=1; \
	  rm -f $$RINGFOLD_SKIPS; exit $$status
	@python/test --installed

test-all: toolchain ## The same with what takes tools, old kernels and minutes (fetched as root on Debian)
	@linux-tests/install-tools
	@export RINGFOLD_SKIPS=$$(mktemp) RINGFOLD_ALL=1 $(WHOLE); \
	  export RINGFOLD_KERNELS=$${KERNELS:-$$(linux-tests/fetch-kernels target/kernels)}; \
	  $(THREADS) cargo test --locked $(ALL) $(FEATURES) --no-fail-fast --lib --test linux-tests -- \
	    --include-ignored --skip catalogue::summary --skip _for_real --skip soak:: \
	    --skip liveness::a_thousand_kills --skip _in_a_child; status=$$?; \
	  cargo test --locked $(ALL) $(FEATURES) --doc || status=1; \
	  cargo test --locked $(ALL) $(FEATURES) --test linux-tests -- --include-ignored _for_real || status=1; \
	  $(SUMMARY) || status=1; \
	  $(MAKE) --no-print-directory test-aarch64 package-check package-twice || status=1; \
	  rm -f $$RINGFOLD_SKIPS; exit $$status
	KILLS=100 python/test

# What tells the answers of another processor's build from this one's.
EMULATED_TESTS = release:: golden:: hints:: first_contact:: count:: compressed:: json_lines:: logs:: zones:: usage::

test-aarch64: toolchain ## The same answers and the unit tests of an aarch64 build, in qemu-user (takes a cross-linker)
	@if command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null; then \
	  $(MAKE) --no-print-directory emulated TARGET=$(OTHER); \
	else echo "skip: tests of $(OTHER): no qemu-user or gcc-aarch64-linux-gnu"; fi

emulated: static
	@mkdir -p target/emulated
	@printf '#!/bin/sh\nexec qemu-$(CROSS) %s "$$@"\n' $(CURDIR)/target/static/$(TARGET)/release/ringfold >target/emulated/ringfold
	@chmod +x target/emulated/ringfold
	RINGFOLD_PROGRAM=$(CURDIR)/target/emulated/ringfold cargo test --locked $(ALL) $(FEATURES) --test linux-tests -- $(EMULATED_TESTS)
	$(CROSS_ENV) cargo test --locked $(ALL) $(FEATURES) --lib --target $(TARGET)

test-python: toolchain ## The Python package: built into target/python, its tests, mypy and ruff (skipped without Python 3.10)
	python/test

# Zig's linker makes a library for glibc 2.28 on any machine. A free-threaded Python takes a wheel of its own version.
WHEEL = CARGO_TARGET_DIR=$(CURDIR)/target/python maturin build --release --locked --zig --compatibility manylinux_2_28 \
  --out $(CURDIR)/target/wheels
FREE_THREADED ?= python3.14t python3.15t

wheel: toolchain ## The Python package with the program in it: target/wheels, for glibc 2.28 and later (takes a venv with maturin[zig])
	cd python && $(WHEEL)
	@cd python && for python in $(FREE_THREADED); do \
	  if "$$python" -c '' 2>/dev/null; then found=1; $(WHEEL) -i "$$python" || exit 1; fi; \
	done; [ -n "$$found" ] || echo "no wheel for a free-threaded Python, as none is here: $(FREE_THREADED)"

soak: toolchain ## Runs of every kind for MINUTES (default 30), answers checked, memory watched; 1,000 kills; SHAPES (2,000) files in small groups
	SOAK_MINUTES=$(MINUTES) cargo test --locked $(FEATURES) --test linux-tests -- --ignored --nocapture --test-threads 1 \
	  soak::soak liveness::a_thousand_kills memory_soak::random_shapes

lint: toolchain ## Format and clippy, warnings are errors
	cargo fmt --all --check
	cargo clippy --locked $(FEATURES) --workspace --all-targets -- -D warnings
	cargo clippy --locked $(LEAN) --no-default-features --lib -- -D warnings
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/$(OTHER)" ]; then \
	  cargo check --locked $(LEAN) --no-default-features --lib --target $(OTHER); \
	else echo "$(OTHER) isn't checked: rustup target add $(OTHER)"; fi

# With the same packages and targets as above no dependency has other features, so none is built again for it.
doc: toolchain ## Documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" cargo doc --locked $(FEATURES) --workspace --no-deps --lib --examples

# 100 million rows, 1.4 GB, unless ROWS is given.
BENCH_ROWS = $(if $(filter file,$(origin ROWS)),100000000,$(ROWS))
BENCH_FILE = data/measurements-$(BENCH_ROWS)$(if $(KEYS),-$(KEYS)-keys).txt
BENCH_DIR  ?= docs/bench

bench: build ## `ringfold bench` with wc, fio, DuckDB and Polars, results in docs/bench (BENCH: more flags)
	@[ -e $(BENCH_FILE) ] || $(MAKE) --no-print-directory $(BENCH_FILE) ROWS=$(BENCH_ROWS)
	@mkdir -p $(BENCH_DIR)
	$(BIN) bench $(BENCH_FILE) --job count --job aggregate --state cached,cold,half --runs 5 \
	  --with wc,fio,duckdb,polars --baseline 'wc -l' --note "commit $$(git describe --always --dirty --exclude='*')" \
	  --export-json $(BENCH_DIR)/results.json --export-markdown $(BENCH_DIR)/results.md \
	  --report $(BENCH_DIR)/report.html $(BENCH)

bench-alloc: toolchain ## Allocators and C libraries: quote and xquo by workers (builds nine programs, minutes)
	@rustup target add $(shell uname -m)-unknown-linux-musl || true
	cargo bench --locked -p ringfold-benches --bench alloc -- $(BENCH)

# DuckDB and Polars: pip install duckdb polars. xan: cargo install xan. On Debian: apt install miller datamash mawk
bench-jobs: toolchain ## Group-by queries against DuckDB, Polars, xan, Miller, datamash and mawk (files of SIZE MiB)
	cargo bench --locked -p ringfold-benches --bench jobs -- --mebibytes $(SIZE) $(BENCH)

bench-ladder: toolchain ## The same group-by and count in the ways that people write them (FILE; 100 million rows by default)
	@[ -n "$(FILE)" ] || [ -e $(BENCH_FILE) ] || $(MAKE) --no-print-directory $(BENCH_FILE) ROWS=$(BENCH_ROWS)
	cargo bench --locked -p ringfold-benches --bench ladder -- $(abspath $(or $(FILE),$(BENCH_FILE))) $(if $(BENCH),-- $(BENCH))

# Files of 200 MiB, unless SIZE is given.
PAIR_SIZE = $(if $(filter file,$(origin SIZE)),200,$(SIZE))
RUNS ?= 7

bench-pair: toolchain ## The binary OLD and this tree's (or NEW) in turn, RUNS times (7): ratios of time and memory; answers must be the same
	@[ -n "$(OLD)" ] || { echo "which binary is the old one? make bench-pair OLD=path" >&2; exit 2; }
	cargo bench --locked -p ringfold-benches --bench jobs -- --mebibytes $(PAIR_SIZE) --runs $(RUNS) \
	  --pair $(abspath $(OLD)) $(if $(NEW),--new $(abspath $(NEW))) $(BENCH)

bench-grid: toolchain ## What departures from the plainest query cost, beside DuckDB and Polars where they are (files of SIZE MiB)
	cargo bench --locked -p ringfold-benches --bench jobs -- --grid --mebibytes $(SIZE) --output docs/bench/grid \
	  $(if $(NEW),--new $(abspath $(NEW))) $(BENCH)

bench-partials: toolchain ## Partials against rkyv, columnar, bitcode and postcard: 10 million groups, one thread (7 GB of memory)
	cargo bench --locked -p ringfold-benches --bench partials -- --output docs/bench/partials \
	  --commit "$$(git describe --always --dirty --exclude='*')" $(BENCH)

fuzz: toolchain ## Fuzz each target for FUZZ_RUNS inputs (20 million), going on where it was stopped
	fuzz/run $(FUZZ_RUNS)

fuzz-short: toolchain ## The same for FUZZ_SHORT_RUNS inputs each (88,000 in all), from the start
	FRESH=1 CARGO_PROFILE_RELEASE_DEBUG=0 fuzz/run $(FUZZ_SHORT_RUNS)

# The compiler's sanitizers are to be had by a flag that stable compilers keep for themselves. A process
# under strace can't look for its leaks, so that is left to the library's own tests.
ASAN = RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
  LSAN_OPTIONS=print_suppressions=0:suppressions=$(CURDIR)/.cargo/leaks.txt
ASAN_TEST = cargo test --locked $(ALL) $(FEATURES) --target $(HOST) --target-dir target/asan
asan: toolchain ## All tests under AddressSanitizer
	$(ASAN) ASAN_OPTIONS=handle_sigbus=0 $(ASAN_TEST) --lib
	$(ASAN) ASAN_OPTIONS=handle_sigbus=0:detect_leaks=0 $(ASAN_TEST) --test linux-tests

# Without a standard library that is built the same way it reports races that are none, and so it does
# where rustix unmaps memory by a call that it doesn't see: by the C library it does. Its shadow is
# large: one test at a time. No process may sleep a second at its end, as they do by default.
tsan: toolchain ## All tests under ThreadSanitizer (takes a nightly toolchain with rust-src)
	RUSTFLAGS="-Zsanitizer=thread --cfg rustix_use_libc --cfg tsan" TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=0 \
	  cargo +nightly test --locked $(ALL) $(FEATURES) --target $(HOST) --target-dir target/tsan -Zbuild-std --lib --test linux-tests -- \
	  --test-threads 1

# What makes no system calls that Miri lacks, and is small enough to be interpreted. rayon leaks its pool by design.
miri: toolchain ## The pure modules' tests under Miri (takes a nightly toolchain with miri)
	@cargo +nightly miri --version >/dev/null 2>&1 || \
	  rustup toolchain install nightly --profile minimal --component miri --component rust-src
	MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-disable-isolation" PROPTEST_CASES=4 \
	  cargo +nightly miri test --locked $(ALL) --target-dir target/miri --lib -- \
	  record::block record::stitch record::framing record::quoted scan:: table::lane_table table::stats table::merged table::shared \
	  near_misses every_way_at_once

mutants: toolchain ## Mutants of stitching, decoding and merging (hours; takes cargo-mutants)
	CARGO_PROFILE_DEV_DEBUG=0 cargo mutants --workspace --no-shuffle -o target/mutants

deny: toolchain ## Licences, advisories, sources and bans of all dependencies (takes cargo-deny)
	cargo deny --locked check

deny-offline: toolchain ## The same without the advisories, which come over the network
	cargo deny --locked --offline check licenses sources bans

build: toolchain ## The release binary
	cargo build --locked --release

# The processor and system that `static` and `package` build for: TARGET=aarch64-unknown-linux-gnu is cross-built.
TARGET ?= $(HOST)
CROSS = $(if $(filter $(firstword $(subst -, ,$(HOST)))-%,$(TARGET)),,$(firstword $(subst -, ,$(TARGET))))
# Nothing of this folder's or the user's paths is in the program, so that others build the same bytes.
STATIC_FLAGS = -C target-feature=+crt-static --remap-path-prefix=$(CURDIR)=/ringfold \
  --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo
CROSS_ENV = $(if $(CROSS),CARGO_TARGET_$(shell echo $(TARGET) | tr a-z- A-Z_)_LINKER=$(CROSS)-linux-gnu-gcc \
  CARGO_TARGET_$(shell echo $(TARGET) | tr a-z- A-Z_)_RUNNER=qemu-$(CROSS))

static: toolchain ## A release binary without shared libraries: target/static/TARGET/release/ringfold
	@$(if $(CROSS),rustup target add $(TARGET),:)
	$(CROSS_ENV) RUSTFLAGS="$(STATIC_FLAGS)" cargo build --locked --release $(FEATURES) --bin ringfold --target $(TARGET) --target-dir target/static

# What makes the Debian package and lists the dependencies, in these versions.
TOOLS ?= $(CURDIR)/target/tools
PACKAGERS = $(TOOLS)/cargo-deb@3.8.0/bin $(TOOLS)/cargo-cyclonedx@0.5.9/bin

$(TOOLS)/%/bin:
	cargo install --locked --root $(@D) $*

package: static $(PACKAGERS) ## target/dist: an archive, a .deb, dependencies (SBOM), checksums, a signature (SIGN_KEY=ssh key)
	PATH="$(subst $() ,:,$(PACKAGERS)):$$PATH" packaging/build $(TARGET) parquet
	@if [ -n "$(SIGN_KEY)" ]; then ssh-keygen -q -Y sign -f "$(SIGN_KEY)" -n ringfold target/dist/SHA256SUMS; \
	  else echo "not signed: make package SIGN_KEY=FILE signs by ssh-keygen"; fi
	@cat target/dist/SHA256SUMS

package-check: package ## The packages in clean roots of Debian 11 and 13 (takes root and debootstrap), those for aarch64 compared
	packaging/check
	packaging/compare

package-twice: package ## The last commit is packaged once more in another folder: the bytes must be the same
	@again=$$(mktemp -d); git clone -q . $$again/ringfold; \
	  $(MAKE) --no-print-directory -C $$again/ringfold package TARGET=$(TARGET) TOOLS=$(TOOLS) && \
	  (cd target/dist && sha256sum -c $$again/ringfold/target/dist/SHA256SUMS); \
	  status=$$?; rm -rf $$again; exit $$status

$(DATA): | build
	@mkdir -p data
	$(BIN) generate --rows $(ROWS) $(if $(KEYS),--keys $(KEYS)) --output $@

toolchain:
	@command -v cargo >/dev/null || { echo "ringfold needs Rust $(MSRV) or later: install it with rustup" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "ringfold needs a C linker: install gcc or clang (Debian: apt install gcc)" >&2; exit 1; }
	@have=$$(rustc --version | cut -d' ' -f2); \
	  [ "$$(printf '%s\n%s\n' $(MSRV) $$have | sort -V | head -1)" = $(MSRV) ] || \
	  { echo "ringfold needs Rust $(MSRV) or later, but this is $$have: rustup update" >&2; exit 1; }

clean: ## Remove what was built and generated
	rm -rf target data
