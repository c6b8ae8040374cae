//! The examples give the right answers, by every engine that reads memory or files.
#![allow(dead_code)]

#[path = "../examples/fold.rs"]
mod fold;
#[path = "../examples/newlines.rs"]
mod newlines;

use ringfold_read::{Config, Engine, Input};

const TEXT: &str = "to be or\nnot to be\nthat is\n";

fn inputs() -> [(Engine, Input); 3] {
    let path = std::env::temp_dir().join(format!("ringfold-read-{}", std::process::id()));
    std::fs::write(&path, TEXT).unwrap();
    let open = || Input::open([&path]).unwrap();
    let inputs = [
        (Engine::Memory, Input::memory([TEXT.as_bytes()])),
        (Engine::Pread, open()),
        (Engine::Auto, open()),
    ];
    std::fs::remove_file(&path).unwrap();
    inputs
}

#[test]
fn examples_count() {
    for (engine, input) in inputs() {
        let config = Config {
            engine,
            ..Config::default()
        };
        let (newlines, stats) = newlines::count(&input, &config).unwrap();
        assert_eq!((newlines, stats.bytes), (3, TEXT.len() as u64), "{engine}");
        let (words, _) = ringfold_read::fold(&input, &config, &fold::Words).unwrap();
        let first: Vec<_> = words
            .iter()
            .map(|(word, count)| (&**word, *count))
            .collect();
        assert_eq!(first[..3], [("be", 2), ("to", 2), ("is", 1)], "{engine}");
    }
}
