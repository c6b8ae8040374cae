//! What the targets of whole runs have in common: an input's bytes as settings and files.
//!
//! The first [`HEADER`] bytes are settings, zeros where they are missing, and the rest is text as it
//! stands, so that a dictionary's words and a mutation's copies stay whole.

use ringfold::internals::simulated::Schedule;
use ringfold::{Config, Engine, Input, Span};

pub const HEADER: usize = 16;

/// One case.
pub struct Case<'a> {
    header: [u8; HEADER],
    sum: u64,
    pub files: Vec<&'a [u8]>,
}

impl<'a> Case<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        let (settings, text) = data.split_at(data.len().min(HEADER));
        let mut header = [0; HEADER];
        header[..settings.len()].copy_from_slice(settings);
        // One file mostly; else three, any of which may be empty.
        let files = match header[0] % 4 {
            0 => {
                let (a, rest) = text.split_at(text.len().min(header[1].into()));
                let (b, c) = rest.split_at(rest.len().min(header[2].into()));
                vec![a, b, c]
            }
            _ => vec![text],
        };
        let sum = data.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, &byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Case {
            header,
            sum: sum >> 16,
            files,
        }
    }

    /// A byte that a target uses as it likes.
    pub fn spare(&self) -> u8 {
        self.header[3]
    }

    /// Three more.
    #[allow(dead_code)]
    pub fn more(&self) -> [u8; 3] {
        [self.header[6], self.header[7], self.header[8]]
    }

    /// One of so many, by the whole input.
    #[allow(dead_code)]
    pub fn one_of(&self, many: usize) -> usize {
        (self.sum >> 12) as usize % many
    }

    /// The longest record.
    pub fn max_record(&self) -> usize {
        // Most limits are above every record here.
        match self.header[4] {
            0..128 => 1 << 20,
            limit => usize::from(limit - 127),
        }
    }

    /// The files, each cut into two spans where the case says so.
    pub fn input(&self) -> Input {
        let input = Input::memory(self.files.iter().copied());
        let cut = u64::from(self.header[5]);
        let spans = input.spans().iter().flat_map(|&Span { source, from, to }| {
            let cut = cut.min(to);
            [
                Span {
                    source,
                    from,
                    to: cut,
                },
                Span {
                    source,
                    from: cut,
                    to,
                },
            ]
        });
        let spans = spans.collect();
        input.with_spans(spans).expect("in order and within")
    }

    pub fn schedule(&self) -> Schedule {
        let [.., block, depth, spare, workers, a, b, c] = self.header;
        Schedule {
            block: usize::from(block) + 1,
            depth: usize::from(depth % 16) + 1,
            spare: usize::from(spare % 16) + 1,
            workers: [1, 1, 1, 2, 2, 3, 5, 8][usize::from(workers % 8)],
            seed: u64::from_le_bytes([a, b, c, a, b, c, a, b]),
        }
    }

    /// One case in 128 goes through the real run too, on 1, 2 or 8 threads, so many. The whole input
    /// decides it: a byte of its own would be kept by every mutation once it has led to new code.
    pub fn threads(&self) -> Option<usize> {
        match self.sum % 384 {
            0 => Some(1),
            128 => Some(2),
            256 => Some(8),
            _ => None,
        }
    }

    pub fn config(&self) -> Config {
        let schedule = self.schedule();
        Config {
            engine: Engine::Memory,
            block_size: Some(schedule.block),
            queue_depth: Some(schedule.depth),
            buffers: Some(schedule.depth + schedule.spare),
            threads: self.threads(),
            max_record: self.max_record(),
            ..Config::default()
        }
    }
}
