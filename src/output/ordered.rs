//! An ordered writer: many threads make texts, one thread writes them in order, and their memory is reused.
//!
//! Texts have sequence numbers. A number has no text, one or several, and is then finished. Its texts are written when it
//! is finished and all numbers before it are written. Threads that make texts never wait here. The caller bounds how far
//! the numbers run ahead.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

use rayon::ThreadPool;

/// Texts on their way to the writer; `T` comes with each finished number and is dropped when its texts are written.
#[derive(Debug)]
pub(crate) struct Ordered<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// The number that is written next.
    next: u64,
    /// That number and those after it.
    numbers: VecDeque<Number<T>>,
    closed: bool,
    /// Memory to be reused.
    texts: Vec<Vec<u8>>,
    lists: Vec<Vec<Text>>,
}

/// A number's texts.
#[derive(Debug)]
struct Number<T> {
    texts: Vec<Text>,
    finished: Option<T>,
}

/// A text, and where in the input it comes from: file and byte.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) place: (u32, u64),
    pub(crate) bytes: Vec<u8>,
}

impl<T> Ordered<T> {
    /// Nothing yet; the first number is 0.
    pub(crate) fn new() -> Self {
        Ordered {
            state: Mutex::new(State {
                next: 0,
                numbers: VecDeque::new(),
                closed: false,
                texts: Vec::new(),
                lists: Vec::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Memory for a text, with whatever an earlier one has left in it.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.lock().texts.pop().unwrap_or_default()
    }

    /// Adds a text to a number that isn't finished.
    pub(crate) fn put(&self, number: u64, text: Text) {
        self.lock().number(number).texts.push(text);
    }

    /// No more texts of this number will come.
    pub(crate) fn finish(&self, number: u64, token: T) {
        let mut state = self.lock();
        state.number(number).finished = Some(token);
        if number == state.next {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// No more numbers will be finished.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Gives the texts of the finished numbers to `write`, in order, until [`Ordered::close`]; `None` whenever there is
    /// no more for now, and at the end.
    pub(crate) fn write_all(&self, mut write: impl FnMut(Option<&Text>)) {
        while let Some(Number {
            mut texts,
            finished,
        }) = self.next(|| write(None))
        {
            texts.iter().for_each(|text| write(Some(text)));
            let mut state = self.lock();
            state.texts.extend(texts.drain(..).map(|text| text.bytes));
            state.lists.push(texts);
            drop(state);
            drop(finished);
        }
    }

    /// The next number, once it is finished; `None` when it never will be. `idle` is called where it isn't yet.
    fn next(&self, idle: impl FnOnce()) -> Option<Number<T>> {
        let mut state = self.lock();
        if !state.is_ready() {
            drop(state);
            idle();
            let waits = |state: &mut State<T>| !state.is_ready() && !state.closed;
            let woken = self.changed.wait_while(self.lock(), waits);
            state = woken.unwrap_or_else(|e| e.into_inner());
        }
        state.take_ready()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl<T> State<T> {
    /// Whether the next number is finished.
    fn is_ready(&self) -> bool {
        let next = self.numbers.front();
        next.is_some_and(|next| next.finished.is_some())
    }

    /// The next number, if it is finished.
    fn take_ready(&mut self) -> Option<Number<T>> {
        if !self.is_ready() {
            return None;
        }
        self.next += 1;
        self.numbers.pop_front()
    }

    fn number(&mut self, number: u64) -> &mut Number<T> {
        let place = (number - self.next) as usize;
        while self.numbers.len() <= place {
            let texts = self.lists.pop().unwrap_or_default();
            self.numbers.push_back(Number {
                texts,
                finished: None,
            });
        }
        &mut self.numbers[place]
    }
}

/// Has the pool make the texts of so many `numbers`, at most `ahead` of them before they are written, and gives them to
/// `write` in order, on this thread, until it returns false. `make` gets memory with whatever an earlier text has left
/// in it.
pub(crate) fn make_in_order(
    pool: &ThreadPool,
    numbers: u64,
    ahead: u64,
    make: impl Fn(u64, &mut Vec<u8>) + Sync,
    mut write: impl FnMut(u64, &[u8]) -> bool,
) {
    if numbers == 0 {
        return;
    }
    let texts = Ordered::new();
    pool.in_place_scope_fifo(|scope| {
        let start = |number| {
            let (texts, make) = (&texts, &make);
            scope.spawn_fifo(move |_| {
                // Also when making it panics, so that the writer comes to an end; the scope repeats the panic.
                let finished = Finish { texts, number };
                let mut bytes = texts.buffer();
                make(number, &mut bytes);
                let place = (0, number);
                texts.put(number, Text { place, bytes });
                drop(finished);
            });
        };
        (0..numbers.min(ahead)).for_each(start);
        let (mut written, mut more) = (0, true);
        texts.write_all(|text| {
            let Some(text) = text else { return };
            more = more && write(written, &text.bytes);
            written += 1;
            if more && written + ahead <= numbers {
                start(written + ahead - 1);
            }
            if !more || written == numbers {
                texts.close();
            }
        });
    });
}

/// Finishes a number when it is dropped; without a text of it nothing more is written.
struct Finish<'a> {
    texts: &'a Ordered<()>,
    number: u64,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.texts.close();
        }
        self.texts.finish(self.number, ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn pool(threads: usize) -> ThreadPool {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        builder.build().unwrap()
    }

    #[test]
    fn texts_are_written_in_order_whatever_order_they_come_in() {
        for first in 0..5 {
            let texts = Ordered::new();
            let text = |number: u64, part: u8| Text {
                place: (0, number),
                bytes: vec![number as u8, part],
            };
            for n in 0..5 {
                let number = (first + 2 * n) % 5;
                // One number brings nothing, one two texts.
                for part in 0..[1, 1, 0, 2, 1][number as usize] {
                    texts.put(number, text(number, part));
                }
                texts.finish(number, ());
            }
            texts.close();
            let mut written: Vec<u8> = Vec::new();
            texts.write_all(|text| written.extend(text.map_or(&[][..], |text| &text.bytes)));
            assert_eq!(written, [0, 0, 1, 0, 3, 0, 3, 1, 4, 0]);
        }
    }

    #[test]
    fn what_is_unfinished_is_not_written() {
        let texts = Ordered::new();
        for number in [0, 1, 2] {
            let bytes = vec![number as u8];
            let place = (0, number);
            texts.put(number, Text { place, bytes });
        }
        texts.finish(0, ());
        texts.finish(2, ());
        texts.close();
        let mut written: Vec<u8> = Vec::new();
        texts.write_all(|text| written.extend(text.map_or(&[][..], |text| &text.bytes)));
        assert_eq!(written, [0], "1 was never finished");
    }

    #[test]
    fn so_many_are_made_ahead_and_no_more() {
        for (threads, numbers, ahead) in [(1, 0, 1), (1, 5, 1), (2, 100, 3), (8, 20, 64)] {
            let (made, written) = (AtomicU64::new(0), AtomicU64::new(0));
            let mut all = Vec::new();
            let make = |number: u64, bytes: &mut Vec<u8>| {
                made.fetch_add(1, Relaxed);
                assert!(made.load(Relaxed) - written.load(Relaxed) <= ahead);
                bytes.clear();
                bytes.extend(number.to_le_bytes());
            };
            make_in_order(&pool(threads), numbers, ahead, make, |number, bytes| {
                assert_eq!(bytes, number.to_le_bytes());
                all.push(number);
                written.fetch_add(1, Relaxed);
                true
            });
            assert_eq!(all, (0..numbers).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_is_written_behind_a_refusal() {
        let mut seen = 0;
        make_in_order(
            &pool(2),
            1_000_000,
            4,
            |_, _| (),
            |_, _| {
                seen += 1;
                seen < 3
            },
        );
        assert_eq!(seen, 3);
    }

    #[test]
    #[should_panic = "not this one"]
    fn a_panic_goes_on_where_it_is_written() {
        let make = |number, _: &mut Vec<u8>| assert!(number != 7, "not this one");
        make_in_order(&pool(2), 100, 4, make, |_, _| true);
    }
}
