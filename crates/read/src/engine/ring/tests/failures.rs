//! Reads that fail, records over the limit, O_DIRECT that is refused late.

use super::*;

/// Read N for every N, once and for good, with every fault: the exact answer or the error.
#[test]
fn the_sweep_of_faults() {
    let text = b"a\nbc\ndef\nghij\nklmno\npqrstu\nvwxyz01\nthe last one".to_vec();
    let input = Input::memory([b"first\nfile\n".to_vec(), text.clone()]);
    let faults = [
        libc::EIO,
        libc::ENODATA,
        libc::EAGAIN,
        libc::EINTR,
        libc::ECANCELED,
    ]
    .map(Fault::Errno)
    .into_iter()
    .chain([Fault::Short(1), Fault::Short(3), Fault::Zero]);
    let (mut cases, mut failures) = (0, 0);
    for fault in faults {
        for forever in [false, true] {
            // Waiting ten times for a read that never works takes a second: once is enough.
            let passing = matches!(fault, Fault::Errno(libc::EAGAIN | libc::EINTR));
            let last = if passing && forever { 1 } else { 22 };
            for nth in 0..last {
                for (order, window) in [
                    (Order::First, None),
                    (Order::Last, None),
                    (Order::Shuffled(nth), None),
                    (Order::First, Some(1)),
                    (Order::Last, Some(2)),
                ] {
                    let case = Case { window, ..CASE };
                    let ring = MemoryRing::new(order);
                    let (failed, shortened) = Default::default();
                    let ring = Faulty {
                        ring,
                        nth,
                        forever,
                        fault,
                        reads: 0,
                        failed,
                        shortened,
                    };
                    let (keep, outcome) = dispatch(&input, input.spans(), &case, ring);
                    cases += 1;
                    match (outcome, fault) {
                        (Ok(()), Fault::Errno(libc::EAGAIN | libc::EINTR)) if forever => {
                            panic!("a read that always fails gave an answer")
                        }
                        (Ok(()), _) => {
                            assert_eq!(keep.joined(0), b"first\nfile\n", "{fault:?} at {nth}");
                            assert_eq!(keep.joined(1), text, "{fault:?} at {nth}");
                        }
                        (Err(error), Fault::Short(_)) => panic!("a short read failed: {error}"),
                        (Err(error), _) => {
                            failures += 1;
                            assert_eq!(error.kind(), Kind::Io);
                            assert!(error.bytes().is_some(), "{error}");
                        }
                    }
                }
            }
        }
    }
    println!("{cases} cases, {failures} of them ended with an error");
    assert!(cases > 500 && failures > 100);
}

/// Reads files, but refuses O_DIRECT from the `nth` read past the page cache on, which some file
/// systems do although they let a file be opened so.
struct Late<'a> {
    ring: ReadRing<'a>,
    nth: u64,
    errno: i32,
    reads: u64,
    refused: Vec<Completion>,
}

impl Ring for Late<'_> {
    fn submit(&mut self, submission: Submission) {
        // Nobody has asked the file system for RWF_DONTCACHE.
        assert_ne!(submission.caching, Caching::Uncached);
        self.reads += u64::from(submission.caching == Caching::Direct);
        match submission.caching == Caching::Direct && self.reads > self.nth {
            true => {
                let result = Err(io::Error::from_raw_os_error(self.errno));
                self.refused.push(Completion { submission, result });
            }
            false => self.ring.submit(submission),
        }
    }

    async fn completion(&mut self) -> Completion {
        match self.refused.pop() {
            Some(completion) => completion,
            None => self.ring.completion().await,
        }
    }

    fn try_completion(&mut self) -> Option<Completion> {
        self.refused.pop()
    }

    fn max_depth(&self) -> usize {
        usize::MAX
    }
}

#[test]
fn o_direct_refused_at_a_read_is_a_fallback_unless_it_was_named() {
    let text = b"a\nbc\ndef\n".repeat(9000);
    let dir = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| dir.path().join(name));
    for path in &paths {
        std::fs::write(path, &text).unwrap();
    }
    let input = Input::open(&paths).unwrap();
    if let Err(error) = input.sources()[0].direct() {
        return eprintln!("skip: {error}");
    }
    for (nth, errno) in (0..5).flat_map(|nth| [(nth, libc::EINVAL), (nth, libc::EOPNOTSUPP)]) {
        for caching in [
            CachingPlan::DirectOr(Caching::Uncached),
            CachingPlan::All(Caching::Direct),
        ] {
            let case = Case {
                block: 16 << 10,
                caching,
                ..CASE
            };
            let ring = Late {
                ring: ReadRing::new(None),
                nth,
                errno,
                reads: 0,
                refused: Vec::new(),
            };
            let (keep, outcome) = dispatch(&input, input.spans(), &case, ring);
            let notices = keep.notices.lock().unwrap().clone();
            if caching == CachingPlan::All(Caching::Direct) {
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains("direct: the file system refuses"), "{error}");
                assert!(error.contains("byte "), "{error}");
                assert_eq!(notices, [""; 0]);
                continue;
            }
            outcome.unwrap();
            assert_eq!(
                (keep.joined(0), keep.joined(1)),
                (text.clone(), text.clone())
            );
            assert_eq!(notices.len(), 2, "one a file: {notices:?}");
            for (notice, path) in notices.iter().zip(&paths) {
                assert!(notice.starts_with(path.to_str().unwrap()), "{notice}");
                assert!(
                    notice.ends_with("; reading through the page cache"),
                    "{notice}"
                );
            }
        }
    }
}

#[test]
fn of_several_failures_the_lowest_is_told() {
    let text = b"fine\nfine\nbad 1\nfine\nbad 2\nfine\nfine\nbad 3\n".to_vec();
    let input = Input::memory([text]);
    for seed in 0..20 {
        for (block, depth) in [(3, 4), (4, 3), (8, 2), (64, 1)] {
            let case = Case {
                block,
                depth,
                slots: depth + 2,
                ..CASE
            };
            let ring = MemoryRing::new(Order::Shuffled(seed));
            let (_, outcome) = dispatch(&input, input.spans(), &case, ring);
            assert_eq!(
                outcome.unwrap_err().bytes(),
                Some(10..13),
                "block {block} seed {seed}"
            );
        }
    }
}

#[test]
fn a_record_over_the_limit_is_told_at_its_start_whatever_the_block_size() {
    for len in 0..12 {
        let text = [&b"ok\n"[..], &vec![b'x'; len], b"\nend"].concat();
        let input = Input::memory([text.clone()]);
        for block in [1, 2, 3, 4, 7, 16, 64] {
            let case = Case {
                block,
                max_record: 6,
                ..CASE
            };
            let ring = MemoryRing::new(Order::Shuffled(len as u64));
            let (keep, outcome) = dispatch(&input, input.spans(), &case, ring);
            match outcome {
                Ok(()) => {
                    assert!(len <= 6, "{len} bytes, block {block}");
                    assert_eq!(keep.joined(0), text);
                }
                Err(error) => {
                    assert!(len > 6, "{len} bytes, block {block}: {error}");
                    assert_eq!(error.bytes(), Some(3..9));
                }
            }
        }
    }
}
