# ringfold: `make run` and `make test` need nothing but a Rust toolchain and a C linker.

ROWS  ?= 10000000
KEYS  ?=
FLAGS ?=
BENCH ?=
FUZZ_RUNS ?= 100000
DATA  := data/measurements-$(ROWS)$(if $(KEYS),-$(KEYS)-keys).txt
BIN   := target/release/ringfold
MSRV  := 1.89

.DEFAULT_GOAL := help
.PHONY: help run test test-all lint doc bench fuzz build toolchain clean

help: ## What there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: build $(DATA) ## Build, generate ROWS rows (default 10 million), aggregate them with statistics
	$(BIN) aggregate --format lines --stats $(FLAGS) $(DATA)

# Tests that skip tell why in a file, because cargo shows nothing of tests that pass.
SUMMARY = cargo test --locked --quiet --test linux-tests -- \
  --ignored --exact catalogue::summary --nocapture

test: toolchain ## All tests that this machine can run as it is; at the end what ran and what didn't
	@export RINGFOLD_SKIPS=$$(mktemp); \
	  cargo test --locked --no-fail-fast; status=$$?; \
	  $(SUMMARY) || status=1; \
	  rm -f $$RINGFOLD_SKIPS; exit $$status

test-all: toolchain ## The same with what takes tools, old kernels and minutes (fetched as root on Debian)
	@linux-tests/install-tools
	@export RINGFOLD_SKIPS=$$(mktemp) RINGFOLD_ALL=1; \
	  export RINGFOLD_KERNELS=$${KERNELS:-$$(linux-tests/fetch-kernels target/kernels)}; \
	  cargo test --locked --no-fail-fast --lib --bins --test linux-tests -- \
	    --include-ignored --skip catalogue::summary --skip _for_real; status=$$?; \
	  cargo test --locked --doc || status=1; \
	  cargo test --locked --test linux-tests -- --include-ignored _for_real || status=1; \
	  $(SUMMARY) || status=1; \
	  rm -f $$RINGFOLD_SKIPS; exit $$status

lint: toolchain ## Format and clippy, warnings are errors
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings

doc: toolchain ## Documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps

bench: toolchain ## Compare with wc -l, DuckDB and Polars (BENCH="--help" tells what can be set)
	cargo bench --locked --bench whole -- $(BENCH)

fuzz: toolchain ## Fuzz each target for FUZZ_RUNS inputs (takes a nightly toolchain; installs cargo-fuzz)
	@cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
	for target in stitch levels count aggregate; do \
	  cargo +nightly fuzz run $$target -- -runs=$(FUZZ_RUNS) -max_len=1024 || exit; \
	done

build: toolchain ## The release binary
	cargo build --locked --release

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
