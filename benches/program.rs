//! This tree's own program, and what other programs print.

use std::process::Command;
use std::sync::LazyLock;

/// The release binary of this tree, as its source is now, beside what this benchmark was built into.
pub static RINGFOLD: LazyLock<String> = LazyLock::new(|| {
    let benchmark = std::env::current_exe().expect("a benchmark is a file");
    // target/release/deps/jobs-0123
    let target = benchmark.ancestors().nth(3).expect("cargo's folders");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let mut build = Command::new(cargo);
    build.args([
        "build",
        "--quiet",
        "--locked",
        "--release",
        "--bin",
        "ringfold",
    ]);
    build
        .args(["--manifest-path", tree, "--target-dir"])
        .arg(target);
    let built = build.status().is_ok_and(|status| status.success());
    assert!(built, "ringfold can't be built: {build:?}");
    target
        .join("release/ringfold")
        .to_string_lossy()
        .into_owned()
});

/// What a program prints when it succeeds.
pub fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_string())
}

/// The commit of the sources, with `-dirty` where they were changed since.
pub fn commit() -> String {
    let commit = output_of("git", &["describe", "--always", "--dirty", "--exclude=*"]);
    commit.unwrap_or("unknown".into())
}
