use std::io::Write;

use tokio::sync::oneshot;

use crate::engine::arena::Layout;
use crate::engine::plan::buffers::CachingPlan;
use crate::engine::ring::raw::*;

/// Long enough to be measured, but shorter than the timeout of a call that nobody wakes.
const SOON: Duration = Duration::from_millis(100);

struct Case {
    ring: RawRing,
    arena: Arc<Arena>,
    slots: Vec<Slot>,
    /// A read of it ends when something is written.
    source: Arc<Source>,
    writer: io::PipeWriter,
}

impl Case {
    /// `None`: there is no such ring here.
    fn new(knobs: &Knobs) -> Option<Case> {
        let layout = Layout {
            block: 4096,
            slots: 2,
        };
        let arena = Arena::new(layout, crate::engine::knobs::HugePages::Off).unwrap();
        let (slots, _) = arena.slots();
        let (reader, writer) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let source = Arc::new(Source::open(0, path).unwrap());
        let plan = Plan {
            block: 4096,
            depth: 1,
            caching: CachingPlan::All(Caching::Cached),
        };
        let made = crate::engine::ring::uring::probe(&Setup::plain())
            .and_then(|_| RawRing::new(knobs, &plan, &arena, 2, std::slice::from_ref(&source)));
        match made {
            Ok(ring) => Some(Case {
                ring,
                arena,
                slots,
                source,
                writer,
            }),
            Err(error) => {
                eprintln!("skip: {error}");
                None
            }
        }
    }

    fn submit(&mut self) {
        let (source, slot) = (Arc::clone(&self.source), self.slots.pop().unwrap());
        let submission = Submission::new(source, 0, 4096, slot, Caching::Cached);
        self.ring.submit(submission);
    }
}

fn knobs() -> [Knobs; 4] {
    let none = Knobs::default();
    [
        none.clone(),
        Knobs {
            task_run: Some(TaskRun::Defer),
            registered_files: true,
            ..none.clone()
        },
        Knobs {
            sqpoll: Some(None),
            ..none.clone()
        },
        Knobs {
            punt: Some(None),
            ..none
        },
    ]
}

#[test]
fn both_a_completion_and_the_wakeup_end_the_wait() {
    for knobs in knobs() {
        // A wait that neither ends takes PATIENCE. A busy machine may be slow at times.
        let quick = |[woken_after, completed]: [Duration; 2]| {
            woken_after < 5 * SOON && completed < 8 * SOON
        };
        let tries = (0..5).map(|_| times_of_both(&knobs));
        let mut tries = tries.skip_while(|times| times.is_some_and(|times| !quick(times)));
        assert!(tries.next().is_some(), "{knobs:?}: they weren't heard");
    }
}

/// When the wakeup is woken_after and when the completion, which come at once and twice [`SOON`]; `None`
/// where the ring can't be set up.
fn times_of_both(knobs: &Knobs) -> Option<[Duration; 2]> {
    let mut case = Case::new(knobs)?;
    case.submit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (home, comes_home) = oneshot::channel();
    let mut writer = case.writer;
    let other = std::thread::spawn(move || {
        std::thread::sleep(SOON);
        home.send(()).unwrap();
        std::thread::sleep(SOON);
        writer.write_all(b"hello").unwrap();
    });
    let started = Instant::now();
    let wakeup = case.ring.wakeup();
    let task = async {
        tokio::select! {
            biased;
            home = comes_home => home.unwrap(),
            _ = case.ring.completion() => panic!("nothing was written"),
        }
        (started.elapsed(), case.ring.completion().await)
    };
    let (woken_after, completion) = runtime.block_on(wakeup.drive(task));
    assert_eq!(completion.result.unwrap(), 5, "{knobs:?}");
    let completed = started.elapsed();
    other.join().unwrap();
    drop((completion.submission, case.ring, case.slots));
    assert_eq!(Arc::strong_count(&case.arena), 1, "the arena can go");
    Some([woken_after, completed])
}

/// Notices of a silent device depend on the timers.
#[test]
fn clocks_go_on_while_nothing_completes() {
    for knobs in &knobs()[..2] {
        let Some(mut case) = Case::new(knobs) else {
            continue;
        };
        case.submit();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let (wakeup, started) = (case.ring.wakeup(), Instant::now());
        let waited = async { tokio::time::timeout(SOON, case.ring.completion()).await };
        assert!(runtime.block_on(wakeup.drive(waited)).is_err());
        // The runtime checks its timers between two calls, the task after the next call.
        assert!(started.elapsed() < 8 * PATIENCE, "{knobs:?}");
        drop(case.writer);
    }
}

#[test]
fn a_ring_that_ends_with_a_read_in_flight_keeps_the_memory() {
    for knobs in knobs() {
        let Some(mut case) = Case::new(&knobs) else {
            continue;
        };
        case.submit();
        case.ring.call_for(0);
        let started = Instant::now();
        drop((case.ring, case.slots));
        assert!(started.elapsed() < 3 * PATIENCE, "{knobs:?}");
        assert!(Arc::strong_count(&case.arena) > 1, "{knobs:?}");
    }
}
