# ringfold: `make run` and `make test` need nothing but a Rust toolchain and a C linker.

ROWS  ?= 10000000
KEYS  ?=
FLAGS ?=
BENCH ?=
FUZZ_RUNS ?= 100000
MINUTES ?= 30
DATA  := data/measurements-$(ROWS)$(if $(KEYS),-$(KEYS)-keys).txt
BIN   := target/release/ringfold
MSRV  := 1.89

.DEFAULT_GOAL := help
.PHONY: help run test soak lint doc bench fuzz build toolchain clean

help: ## What there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: build $(DATA) ## Build, generate ROWS rows (default 10 million), aggregate them with statistics
	$(BIN) aggregate --format lines --stats $(FLAGS) $(DATA)

test: toolchain ## All tests
	cargo test --locked

soak: toolchain ## Runs of every kind for MINUTES (default 30), answers checked, memory watched; 1,000 kills
	SOAK_MINUTES=$(MINUTES) cargo test --locked --test linux-tests -- --ignored --nocapture --test-threads 1 \
	  soak::soak liveness::a_thousand_kills

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
