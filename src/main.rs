//! The `ringfold` program: see `ringfold::cli`.

use std::process::ExitCode;

use ringfold::cli::Allocator;

#[cfg(all(feature = "jemalloc", feature = "mimalloc"))]
compile_error!("one allocator: jemalloc or mimalloc");

#[cfg(all(feature = "jemalloc", not(feature = "mimalloc")))]
#[global_allocator]
static ALLOCATOR: Allocator<tikv_jemallocator::Jemalloc> = Allocator(tikv_jemallocator::Jemalloc);

#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: Allocator<mimalloc::MiMalloc> = Allocator(mimalloc::MiMalloc);

#[cfg(not(any(feature = "jemalloc", feature = "mimalloc")))]
#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator(std::alloc::System);

fn main() -> ExitCode {
    ringfold::cli::main(std::env::args_os().collect())
}
