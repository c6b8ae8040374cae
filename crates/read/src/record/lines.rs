//! How many lines end before a place, counted block by block while blocks come in any order.

use crate::record::bytes;

/// Stretches of files whose lines were counted. What stands side by side is one stretch.
#[derive(Debug)]
pub struct Lines {
    /// What ends a line.
    end: u8,
    stretches: Vec<Stretch>,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines::ended_by(b'\n')
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    file: u32,
    from: u64,
    to: u64,
    /// Lines that end in it.
    ends: u64,
}

/// A place whose line is known when all stretches before it are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Where its stretch begins.
    pub from: u64,
    /// Lines that end in the stretch before it.
    pub ends: u64,
}

impl Lines {
    /// Of lines that end with this byte.
    pub fn ended_by(end: u8) -> Lines {
        Lines {
            end,
            stretches: Vec::new(),
        }
    }

    /// Adds the next bytes of a file; those of a stretch come in order.
    pub fn add(&mut self, file: u32, offset: u64, text: &[u8]) {
        let (to, ends) = (
            offset + text.len() as u64,
            bytes::count(self.end, text) as u64,
        );
        match self.stretches.last_mut() {
            Some(last) if (last.file, last.to) == (file, offset) => {
                (last.to, last.ends) = (to, last.ends + ends);
            }
            _ => self.stretches.push(Stretch {
                file,
                from: offset,
                to,
                ends,
            }),
        }
    }

    /// The mark of the place after the last bytes that were added.
    pub fn mark(&self) -> Mark {
        let last = self.stretches.last();
        last.map_or(Mark { from: 0, ends: 0 }, |last| Mark {
            from: last.from,
            ends: last.ends,
        })
    }

    /// Adds what another one has counted.
    pub fn append(&mut self, mut other: Lines) {
        self.stretches.append(&mut other.stretches);
    }

    /// What was counted, in the order of the files.
    pub fn sorted(mut self) -> Counted {
        self.stretches
            .sort_unstable_by_key(|stretch| (stretch.file, stretch.from, stretch.to));
        let (mut file, mut before) = (0, 0);
        for stretch in &mut self.stretches {
            if stretch.file != file {
                (file, before) = (stretch.file, 0);
            }
            before += stretch.ends;
            stretch.ends = before - stretch.ends;
        }
        Counted(self.stretches)
    }
}

/// The lines before each stretch.
#[derive(Debug, Clone)]
pub struct Counted(Vec<Stretch>);

impl Counted {
    /// The number of the line, from 1, of a marked place; `None` where a file wasn't read from its start.
    pub fn line(&self, file: u32, mark: Mark) -> Option<u64> {
        if self.begins_late(file).is_some() {
            return None;
        }
        let found = (self.0).binary_search_by_key(&(file, mark.from), |s| (s.file, s.from));
        Some(1 + mark.ends + found.map_or(0, |at| self.0[at].ends))
    }

    /// Where a file begins that wasn't read from its start.
    pub fn begins_late(&self, file: u32) -> Option<u64> {
        let first = self.0.partition_point(|stretch| stretch.file < file);
        let first = self.0.get(first).filter(|first| first.file == file)?;
        (first.from > 0).then_some(first.from)
    }

    /// Says how many lines end before that place.
    pub fn begin(&mut self, file: u32, before: u64) {
        for stretch in self.0.iter_mut().filter(|stretch| stretch.file == file) {
            stretch.ends += before;
        }
        let start = Stretch {
            file,
            from: 0,
            to: 0,
            ends: 0,
        };
        let at = self.0.partition_point(|stretch| stretch.file < file);
        self.0.insert(at, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cut of a text into three, the parts in every order and in two lists.
    #[test]
    fn lines_are_known_whatever_the_order() {
        let text = b"a\n\nbc\nd\n\n";
        let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]];
        for one in 0..=text.len() {
            for two in one..=text.len() {
                let parts = [0..one, one..two, two..text.len()];
                for order in orders {
                    let mut lists = [Lines::default(), Lines::default()];
                    let mut marks = Vec::new();
                    for at in order {
                        let lines = &mut lists[at % 2];
                        let mut from = parts[at].start;
                        for place in parts[at].clone() {
                            lines.add(1, from as u64, &text[from..place]);
                            from = place;
                            marks.push((place, lines.mark()));
                        }
                        lines.add(1, from as u64, &text[from..parts[at].end]);
                    }
                    let [mut all, other] = lists;
                    all.add(0, 0, b"\n\n");
                    all.append(other);
                    let counted = all.sorted();
                    for (place, mark) in marks {
                        let before = text[..place].iter().filter(|&&byte| byte == b'\n');
                        assert_eq!(counted.line(1, mark), Some(1 + before.count() as u64));
                    }
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_read_from_its_middle_has_no_lines_until_they_are_known() {
        let mut lines = Lines::default();
        lines.add(0, 0, b"a\nb\n");
        lines.add(1, 10, b"a\n");
        let mark = lines.mark();
        lines.add(2, 0, b"\n");
        let mut counted = lines.sorted();
        assert_eq!(
            [0, 1, 2].map(|file| counted.begins_late(file)),
            [None, Some(10), None]
        );
        assert_eq!(counted.line(1, mark), None);
        counted.begin(1, 4);
        assert_eq!(counted.line(1, mark), Some(6));
    }
}
