//! Progress on stderr: when it is drawn, and that nothing of it is left.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{end_of, ringfold, start};

/// What clears the line.
const CLEAR: &str = "\r\x1b[K";

/// A run that waits for more of its input, and has drawn progress.
fn drawn(flags: &[&str]) -> Child {
    let mut command = ringfold(["count", "--progress", "always", "-"]);
    let mut child = start(command.args(flags).stdin(Stdio::piped()));
    child.stdin.as_mut().unwrap().write_all(b"a\n").unwrap();
    let mut first = [0; CLEAR.len() + 1];
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_exact(&mut first).unwrap();
    assert!(first.starts_with(CLEAR.as_bytes()), "{first:?}");
    child
}

#[test]
fn the_line_is_cleared_at_the_end() {
    let mut child = drawn(&[]);
    drop(child.stdin.take());
    let ended = end_of(child);
    assert_eq!((ended.code, &ended.stdout[..]), (Some(0), &b"1 2 -\n"[..]));
    assert!(ended.stderr.ends_with(CLEAR), "{:?}", ended.stderr);
}

#[test]
fn the_line_is_cleared_by_a_signal() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for flags in [&[][..], &["--io-timeout", "30s"]] {
            let mut child = drawn(flags);
            let _stdin = child.stdin.take();
            kill_process(Pid::from_child(&child), signal).unwrap();
            let ended = end_of(child);
            assert_eq!(ended.code, Some(code), "{flags:?}: {}", ended.stderr);
            assert!(
                ended.stderr.ends_with(CLEAR),
                "{flags:?}: {:?}",
                ended.stderr
            );
        }
    }
}

#[test]
fn no_progress_where_nobody_looks() {
    for flags in [&[][..], &["--progress", "auto"], &["--progress", "never"]] {
        let mut child = start(ringfold(["count"]).args(flags).stdin(Stdio::piped()));
        std::thread::sleep(std::time::Duration::from_millis(500));
        drop(child.stdin.take());
        assert_eq!(end_of(child).answer(), b"0 0\n");
    }
}
