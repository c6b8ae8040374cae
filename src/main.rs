//! The `ringfold` program: see `ringfold::cli`.

use std::process::ExitCode;

#[cfg(all(feature = "jemalloc", feature = "mimalloc"))]
compile_error!("one allocator: jemalloc or mimalloc");

#[cfg(all(feature = "jemalloc", not(feature = "mimalloc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ringfold::cli::main()
}
