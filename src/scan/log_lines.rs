//! Where values stand in the lines of a log: what [`Pattern::split`] finds, by bitmaps of the bytes that its literals
//! begin with, one field of all lines after the other. These are plain readings; other lines are left to the pattern.

use std::sync::Arc;

use ringfold_read::internals::Level;

use crate::format::field::Field;
use crate::format::log::{Form, Pattern, Piece, request};
use crate::scan::bitmaps::{Bitmap, Bitmaps, Literal, Places, Set};
use crate::scan::index::TextWindow;

/// Bytes of a time as most logs have it, `25/Nov/2026:13:45:10 +0000`, and its marks in the first 16 bytes and in those from 8.
const USUAL_TIME: usize = 26;
const DATE: (u128, u128) = marks(&[(2, b'/'), (6, b'/'), (11, b':'), (14, b':')]);
const CLOCK: (u128, u128) = marks(&[(9, b':'), (12, b' ')]);

/// A mask of bytes, and what they are.
const fn marks(places: &[(u32, u8)]) -> (u128, u128) {
    let (mut mask, mut marks, mut at) = (0, 0, 0);
    while at < places.len() {
        let (place, mark) = places[at];
        mask |= 0xff << (8 * place);
        marks |= (mark as u128) << (8 * place);
        at += 1;
    }
    (mask, marks)
}

/// The bitmap of newlines.
const NEWLINES: usize = 0;

/// What is looked for in each line.
pub(crate) struct LogLines {
    pattern: Arc<Pattern>,
    before: Literal,
    steps: Vec<Step>,
    bitmaps: Bitmaps,
    /// Where the lines of the window end.
    ends: Places,
    /// Where the current field of each line begins and ends.
    at: Vec<u32>,
    found: Vec<u32>,
    /// Lines whose current field doesn't end at the first place where it might.
    rest: Vec<u32>,
    /// Lines of another form.
    bad: Vec<u32>,
    /// The parts of a request.
    request: Vec<Field>,
    /// Lines of the window that go on after the pattern, and where the first one begins.
    pub(crate) longer: (u64, u32),
}

/// A field, and the literal that it ends before.
struct Step {
    literal: Literal,
    /// The bitmap of the bytes that it may end before.
    stops: usize,
    form: Form,
    is_open: bool,
    /// The list of the field's spans, or those of its parts.
    to: To,
}

/// Where the place of a field is noted.
#[derive(Clone, Copy)]
enum To {
    Nowhere,
    Column(usize),
    /// Those of method, path and protocol.
    Request([Option<usize>; 3]),
}

impl LogLines {
    /// For the columns of a pattern that are wanted, from 0. There is none for literals that are long or begin with a
    /// backslash, and for fields that have a blank in almost every line.
    pub(crate) fn new(pattern: &Arc<Pattern>, columns: &[usize]) -> Option<LogLines> {
        let mut sets: Vec<Set> = vec![[b'\n'; 2]];
        let mut column = 0;
        let mut wanted = || {
            column += 1;
            columns.iter().position(|known| *known == column - 1)
        };
        let mut steps = Vec::new();
        for (
            &Piece {
                is_request,
                form,
                is_open,
                ..
            },
            behind,
        ) in pattern.steps()
        {
            if form.has_blanks() {
                return None;
            }
            let stops = match behind.first() {
                None => [b' ', b' '],
                Some(b'\\') => return None,
                Some(b'"') => [b'"', b'\\'],
                Some(&first) => [first, first],
            };
            let known = sets.iter().position(|set| *set == stops);
            steps.push(Step {
                literal: Literal::new(behind)?,
                stops: known.unwrap_or(sets.len()),
                form,
                is_open,
                to: match is_request {
                    true => match [wanted(), wanted(), wanted()] {
                        [None, None, None] => To::Nowhere,
                        parts => To::Request(parts),
                    },
                    false => wanted().map_or(To::Nowhere, To::Column),
                },
            });
            if known.is_none() {
                sets.push(stops);
            }
        }
        Some(LogLines {
            pattern: pattern.clone(),
            before: Literal::new(pattern.start())?,
            steps,
            bitmaps: Bitmaps::new(sets),
            ends: Places::new(),
            at: Vec::new(),
            found: Vec::new(),
            rest: Vec::new(),
            bad: Vec::new(),
            request: Vec::new(),
            longer: (0, 0),
        })
    }

    /// As [`Lines::read`](crate::scan::lines::Lines::read) does.
    pub(crate) fn read(
        &mut self,
        level: Level,
        window: TextWindow<'_>,
        spans: &mut [Box<[u32]>],
        starts: &mut Vec<u32>,
        others: &mut Vec<u32>,
    ) -> usize {
        self.bitmaps.fill(level, window);
        (self.bitmaps).list_newlines(NEWLINES, &mut self.ends);
        let [before @ .., last] = self.ends.all() else {
            return 0;
        };
        let last = *last as usize;
        let behind = before.iter().map(|end| end + 1);
        starts.clear();
        starts.extend([0].into_iter().chain(behind));
        self.begin(window, starts);
        for step in 0..self.steps.len() {
            self.step(level, window, step);
            self.check(window, self.steps[step].form);
            if self.steps[step].is_open {
                self.keep(|at, len| !window.bytes()[at..at + len].contains(&b' '));
            }
            self.note(window, self.steps[step].to, spans);
            self.advance(self.steps[step].literal.len);
        }
        self.longer = (0, 0);
        for (line, &at) in self.at.iter().enumerate() {
            if ends_line(window, at as usize) {
                continue;
            }
            match (self.pattern).may_end(
                &window.bytes()[..self.ends.all()[line] as usize],
                at as usize,
            ) {
                false => self.bad.push(line as u32),
                true if self.longer.0 == 0 => self.longer = (1, starts[line]),
                true => self.longer.0 += 1,
            }
        }
        if !self.bad.is_empty() {
            self.take_out(spans, starts, others);
        }
        for spans in spans {
            spans[starts.len()..][..8].fill(0);
        }
        last + 1
    }

    /// Goes to the first field of each line.
    fn begin(&mut self, window: TextWindow<'_>, starts: &[u32]) {
        self.bad.clear();
        for (line, &start) in (0..).zip(starts) {
            let start = start as usize;
            if ends_line(window, start) || !self.before.is_at(window, start) {
                self.bad.push(line);
            }
        }
        self.found.clear();
        self.found.extend_from_slice(starts);
        self.at.resize(starts.len(), 0);
        self.advance(self.before.len);
    }

    /// Goes as many bytes behind what was found last; lines of another form stay at their end.
    fn advance(&mut self, len: usize) {
        for (at, found) in self.at.iter_mut().zip(&self.found) {
            *at = found + len as u32;
        }
        for &line in &self.bad {
            self.at[line as usize] = self.ends.all()[line as usize];
        }
    }

    /// Finds where the current field of each line ends.
    #[inline(never)]
    fn step(&mut self, level: Level, window: TextWindow<'_>, step: usize) {
        let step = &self.steps[step];
        let wanted = (step.stops, &step.literal);
        self.found.resize(self.at.len(), 0);
        let (found, rest) = (&mut self.found, &mut self.rest);
        (self.bitmaps).find(level, window, wanted, &self.at, found, rest);
        let stops = self.bitmaps.of(step.stops);
        for &line in &self.rest {
            let at = self.at[line as usize] as usize;
            let end = step.end(window, stops, at);
            if end.is_none() {
                self.bad.push(line);
            }
            found[line as usize] = end.unwrap_or(at) as u32;
        }
        if step.literal.len == 0 {
            for (&at, found) in self.at.iter().zip(found) {
                let has_return = *found > at && ends_line(window, *found as usize - 1);
                *found -= u32::from(has_return);
            }
        }
    }

    /// Leaves lines to the pattern whose current value may not be a plain one.
    #[inline(never)]
    fn check(&mut self, window: TextWindow<'_>, form: Form) {
        match form {
            Form::Text | Form::Word | Form::Host | Form::User => {}
            Form::Ident => self.keep(|at, len| len == 1 && window.words_at(at) as u8 == b'-'),
            Form::Time | Form::ZonedTime => self.keep(|at, len| {
                let is_usual = |(mask, marks): (u128, u128), from: usize| {
                    (window.words_at(at + from) ^ marks) & mask == 0
                };
                len == USUAL_TIME && is_usual(DATE, 0) && is_usual(CLOCK, 8)
            }),
            Form::Status => self.keep(|at, len| {
                // Of a digit the higher half is 3, also after 6 is added.
                let three = window.words_at(at) as u32 & 0xff_ffff;
                let is_digits = |three: u32| three & 0xf0_f0f0 == 0x30_3030;
                len == 3 && is_digits(three) && is_digits(three + 0x06_0606)
            }),
            Form::List => {
                self.keep(|at, len| {
                    len > 0 && !matches!(window.bytes()[at + len - 1], b',' | b':')
                });
            }
            Form::Request => self.keep(|_, _| false),
        }
    }

    /// Keeps the lines whose value is plain, by where it begins and how long it is.
    #[inline(always)]
    fn keep(&mut self, is_plain: impl Fn(usize, usize) -> bool) {
        let values = self.at.iter().zip(&self.found);
        for (line, (&at, &found)) in (0..).zip(values) {
            if !is_plain(at as usize, (found - at) as usize) {
                self.bad.push(line);
            }
        }
    }

    /// Notes where the current field of each line stands.
    fn note(&mut self, window: TextWindow<'_>, to: To, spans: &mut [Box<[u32]>]) {
        let places = self.at.iter().zip(&self.found);
        match to {
            To::Nowhere => {}
            To::Column(to) => {
                for ((at, found), span) in places.zip(&mut spans[to]) {
                    *span = at | (found + 1) << 16;
                }
            }
            To::Request(to) => {
                for (line, (&at, &found)) in places.enumerate() {
                    self.request.clear();
                    request(
                        window.bytes(),
                        at as usize,
                        found as usize,
                        &mut self.request,
                    );
                    for (to, field) in to.iter().zip(&self.request) {
                        if let Some(to) = *to {
                            spans[to][line] = field.start as u32 | (field.end as u32 + 1) << 16;
                        }
                    }
                }
            }
        }
    }

    /// Takes lines of another form out.
    fn take_out(&mut self, spans: &mut [Box<[u32]>], starts: &mut Vec<u32>, others: &mut Vec<u32>) {
        self.bad.sort_unstable();
        self.bad.dedup();
        let (mut kept, mut bad) = (0, self.bad.iter().peekable());
        for line in 0..starts.len() {
            if bad.next_if(|bad| **bad as usize == line).is_some() {
                others.push(starts[line]);
                continue;
            }
            starts[kept] = starts[line];
            for spans in &mut *spans {
                spans[kept] = spans[line];
            }
            kept += 1;
        }
        starts.truncate(kept);
    }
}

impl Step {
    /// Where the field at `at` ends, if it does in its line.
    fn end(&self, window: TextWindow<'_>, stops: Bitmap<'_>, mut at: usize) -> Option<usize> {
        loop {
            let stop = stops.next(at);
            if self.literal.is_at(window, stop) {
                return Some(stop);
            }
            // A backslash takes a quote's meaning, but no newline's.
            at = match window.words_at(stop).to_le_bytes() {
                [b'\\', next, ..] if next != b'\n' => stop + 2,
                _ => return None,
            };
        }
    }
}

/// Whether nothing but the line's end stands at `at`.
#[inline(always)]
fn ends_line(window: TextWindow<'_>, at: usize) -> bool {
    matches!(
        window.words_at(at).to_le_bytes(),
        [b'\n', ..] | [b'\r', b'\n', ..]
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::log::pattern;
    use ringfold_read::PaddedBuf;

    /// Where rows begin, where other lines do, and the bytes of each row's columns.
    type Found = (Vec<u32>, Vec<u32>, Vec<Vec<Vec<u8>>>);

    fn by_bitmaps(level: Level, log: &Arc<Pattern>, columns: &[usize], text: &[u8]) -> Found {
        let padded = PaddedBuf::from(text);
        let block = padded.block(0, 0, 0);
        let mut lines = LogLines::new(log, columns).unwrap();
        let mut spans: Vec<Box<[u32]>> = columns.iter().map(|_| vec![9; 1000].into()).collect();
        let (mut starts, mut others) = (Vec::new(), Vec::new());
        let window = TextWindow::at(&block, 0);
        let end = lines.read(level, window, &mut spans, &mut starts, &mut others);
        let newline = text.iter().rposition(|byte| *byte == b'\n');
        assert_eq!(end, newline.map_or(0, |newline| newline + 1));
        let value = |span: u32| text[span as usize & 0xffff..(span >> 16) as usize - 1].to_vec();
        let row = |row: usize| spans.iter().map(|spans| value(spans[row])).collect();
        let rows = (0..starts.len()).map(row).collect();
        (starts, others, rows)
    }

    fn by_the_pattern(log: &Pattern, columns: &[usize], text: &[u8]) -> Found {
        let (mut fields, mut at) = (Vec::new(), 0);
        let (mut starts, mut others, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") {
                break;
            }
            match log.split(text, at, &mut fields) {
                Ok(_) if !fields.is_empty() => {
                    let value =
                        |&column: &usize| text[fields[column].start..fields[column].end].to_vec();
                    rows.push(columns.iter().map(value).collect());
                    starts.push(at as u32);
                }
                _ => others.push(at as u32),
            }
            at += line.len();
        }
        (starts, others, rows)
    }

    fn part() -> impl Strategy<Value = &'static str> {
        let parts = [
            "\n",
            "\r\n",
            "\r",
            " ",
            " ",
            "\"",
            "\"",
            "\\",
            "[",
            "]",
            "] \"",
            "\" ",
            "a",
            "ab",
            "%",
            "GET / HTTP/1.1",
            " HTTP/",
            "203.0.113.9 - - [25/Nov/2026] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x y\"\n",
            "1 - - [2] \"-\" 3 4\n",
            "1 - - [25/Nov/2026:13:45:10 +0000] \"GET /a\\\" HTTP/1.1\" 200 5 \"-\" \"x y\"",
            "::1 - a b [25/Nov/2026:13:45:10 +0000] \"-\" - 5\n",
            "a, b : c 200",
            " 404\n",
            "a long text of more bytes than there are bits in a word, or in two of them",
        ];
        prop::sample::select(parts.to_vec())
    }

    proptest! {
        #[test]
        fn lines_are_split_as_the_pattern_splits_them(parts in prop::collection::vec(part(), 0..60)) {
            let text = parts.concat().into_bytes();
            for log in ["common", "combined", "%h", "%h %u", "\"%r\" %s", "a%h\"%u\"", "[%{a}i] %s%%", "$upstream_a $b $status", "$b $upstream_a|$c %s", "[%r]"] {
                let log = pattern(log).unwrap();
                let all: Vec<usize> = (0..log.names.len()).collect();
                for columns in [&all[..], &all[all.len() / 2..], &[]] {
                    let (starts, others, rows) = by_the_pattern(&log, columns, &text);
                    for level in Level::available() {
                        let (found, left, values) = by_bitmaps(level, &log, columns, &text);
                        let mut want = starts.iter().zip(&rows);
                        for row in found.iter().zip(&values) {
                            prop_assert!(want.any(|known| known == row), "{} {:?} {:?}", log.text, level, row);
                        }
                        // Each line is one or the other.
                        let mut lines = [&found[..], &left].concat();
                        lines.sort_unstable();
                        let mut all = [&starts[..], &others].concat();
                        all.sort_unstable();
                        prop_assert_eq!(lines, all, "{} {:?}", log.text, level);
                    }
                }
            }
        }
    }

    /// The bitmaps leave no usual line to the pattern.
    #[test]
    fn usual_lines() {
        let line = "203.0.113.9 - ann [25/Nov/2026:13:45:10 +0000] \"GET /a\\\"b HTTP/1.1\" 200 5 \"-\" \"x y\"";
        let text = [line, "\n", line, " 0.004 \"more\"\r\n"].concat().repeat(3);
        let log = pattern("combined").unwrap();
        for level in Level::available() {
            let (starts, others, rows) = by_bitmaps(level, &log, &[5, 10], text.as_bytes());
            assert_eq!((starts.len(), others.len()), (6, 0));
            assert!(
                rows.iter()
                    .all(|row| *row == [b"/a\\\"b".to_vec(), b"x y".to_vec()])
            );
        }
    }

    /// A status is three digits; all else is left to the pattern.
    #[test]
    fn every_byte_in_a_status() {
        let log = pattern("%h %s").unwrap();
        for byte in (0..=255).filter(|byte| !b" \n\r".contains(byte)) {
            for at in 0..3 {
                let mut line = *b"a 205\n";
                line[2 + at] = byte;
                let (starts, ..) = by_bitmaps(Level::Portable, &log, &[1], &line);
                assert_eq!(starts.len() == 1, byte.is_ascii_digit(), "{byte} {at}");
            }
        }
    }

    #[test]
    fn patterns_that_bitmaps_do_not_know() {
        for (text, is_known) in [
            ("%h 12345678%u", false),
            ("%h1234567 %u", true),
            ("%h\\%u", false),
            ("%h $request %s", false),
            ("$time_local %s", false),
        ] {
            let log = pattern(text).unwrap();
            assert_eq!(LogLines::new(&log, &[0]).is_some(), is_known, "{text:?}");
        }
    }
}
