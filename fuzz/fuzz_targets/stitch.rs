//! Any text, cut into spans and pieces anywhere, arriving in any order, with any room behind a
//! piece, lines or records whose quoted newlines don't count: every record is released once, whole,
//! with its offset. Over a limit, a record that is over it is told, and no other is torn.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ringfold::record::stitch::{Oversized, Piece, Release, Stitcher};
use ringfold::{Delimited, Framing};

#[derive(Arbitrary, Debug)]
struct Case {
    /// Bytes of a piece.
    block: u8,
    /// Room behind it.
    spare: u8,
    /// Where the second span begins.
    cut: u16,
    quoted: bool,
    /// The longest record, if there is a limit.
    max_record: Option<u8>,
    /// Which of the pieces that are left arrives next.
    order: Vec<u8>,
    text: Vec<u8>,
}

struct Buffer {
    bytes: Vec<u8>,
    room: usize,
}

impl Piece for Buffer {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    fn append(&mut self, more: &[u8]) -> bool {
        let fits = self.bytes.len() + more.len() <= self.room;
        if fits {
            self.bytes.extend_from_slice(more);
        }
        fits
    }
}

/// Newlines end records, but not between quotes.
#[derive(Clone)]
struct Quoted;

impl Quoted {
    /// Whether each byte ends a record, with one past it.
    fn ends(mut within: bool, bytes: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
        let mut ends = Vec::new();
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => within = !within,
                b'\n' if !within => ends.push(at + 1),
                _ => {}
            }
        }
        ends.into_iter()
    }
}

impl Framing for Quoted {
    /// Between quotes.
    type State = bool;
    const STATEFUL: bool = true;

    fn advance(&self, within: bool, bytes: &[u8]) -> bool {
        within ^ (bytes.iter().filter(|&&byte| byte == b'"').count() % 2 == 1)
    }

    fn first_end(&self, within: bool, bytes: &[u8]) -> Option<usize> {
        Quoted::ends(within, bytes).next()
    }

    fn last_end(&self, within: bool, bytes: &[u8]) -> Option<usize> {
        Quoted::ends(within, bytes).next_back()
    }
}

/// A record with its offset.
type Record = (u64, Vec<u8>);

fuzz_target!(|case: Case| {
    let text = &case.text[..];
    let cut = usize::from(case.cut).min(text.len());
    let mut records = Vec::new();
    let stitched = match case.quoted {
        // A state is known only at the file's start.
        true => serve(&case, Quoted, 0..text.len(), &mut records),
        false => serve(&case, Delimited::NEWLINE, 0..cut, &mut records)
            .and_then(|()| serve(&case, Delimited::NEWLINE, cut..text.len(), &mut records)),
    };
    records.sort();
    let expected = match case.quoted {
        true => split(Quoted::ends(false, text), text),
        false => split((1..=text.len()).filter(|&end| text[end - 1] == b'\n'), text),
    };
    match stitched {
        Ok(()) => assert_eq!(records, expected, "records lost, torn or doubled"),
        Err(Oversized { offset }) => {
            let limit = usize::from(case.max_record.expect("only a limit is exceeded"));
            let over = expected.iter().find(|record| record.0 == offset);
            assert!(over.is_some_and(|(_, record)| record.len() > limit));
            assert!(
                records
                    .iter()
                    .all(|record| expected.binary_search(record).is_ok())
            );
            assert!(
                records.windows(2).all(|pair| pair[0].0 < pair[1].0),
                "doubled"
            );
        }
    }
});

/// The records that end there, and what is left behind the last.
fn split(ends: impl Iterator<Item = usize>, text: &[u8]) -> Vec<Record> {
    let mut from = 0;
    ends.chain([text.len()])
        .filter_map(|end| {
            let record = (from as u64, text[from..end].to_vec());
            from = end;
            (!record.1.is_empty()).then_some(record)
        })
        .collect()
}

/// Stitches a span as an engine would, and adds its records.
fn serve<F: Framing>(
    case: &Case,
    framing: F,
    span: std::ops::Range<usize>,
    records: &mut Vec<Record>,
) -> Result<(), Oversized> {
    if span.is_empty() {
        return Ok(());
    }
    let text = &case.text[..];
    let block = usize::from(case.block).max(1);
    let own_start = span.start == 0;
    // Reads begin a byte before a span that doesn't start the file, and lie on the grid.
    let first = span.start.saturating_sub(usize::from(!own_start));
    let mut starts = vec![first];
    starts.extend(
        (first / block + 1..)
            .map(|number| number * block)
            .take_while(|&at| at < text.len()),
    );
    let piece_at = |index: usize| {
        let from = starts[index];
        let to = starts.get(index + 1).copied().unwrap_or(text.len());
        let bytes = text[from..to].to_vec();
        let room = bytes.len() + usize::from(case.spare);
        // The last record end of the span is looked for from its last byte on.
        let last = span.end - 1;
        let cut = (span.end < text.len() && to > last).then(|| last.saturating_sub(from));
        (Buffer { bytes, room }, from as u64, cut)
    };
    let max_record = case.max_record.map_or(usize::MAX, usize::from);
    let mut stitcher = Stitcher::new(framing.clone(), max_record, own_start);
    let mut out = Vec::new();
    let inside = starts.iter().take_while(|&&start| start < span.end).count();
    let mut left: Vec<usize> = (0..inside).collect();
    let mut order = case.order.iter().copied();
    let arrive = |stitcher: &mut Stitcher<F, Buffer>, index: usize, out: &mut Vec<_>| {
        let (piece, offset, cut) = piece_at(index);
        stitcher.arrive(index as u64, piece, offset, cut, out)
    };
    let mut stitch = |out: &mut Vec<_>| {
        while !left.is_empty() {
            let next = usize::from(order.next().unwrap_or(0)) % left.len();
            arrive(&mut stitcher, left.remove(next), out)?;
        }
        let mut next = inside;
        while next < starts.len() && stitcher.wants(next as u64) {
            arrive(&mut stitcher, next, out)?;
            next += 1;
        }
        if stitcher.end().is_none() {
            stitcher.finish(next as u64, out)?;
        }
        assert!(stitcher.is_done(), "pieces were kept back");
        Ok(())
    };
    let stitched = stitch(&mut out);
    if stitched.is_err() {
        stitcher.abandon(&mut out);
    }
    for Release {
        piece,
        range,
        offset,
        gathered,
        ..
    } in out
    {
        let bytes = &piece.bytes()[range];
        let mut ends = Vec::new();
        let mut from = 0;
        while let Some(end) = framing.first_end(F::State::default(), &bytes[from..]) {
            from += end;
            ends.push(from);
        }
        let split = split(ends.into_iter(), bytes).into_iter();
        records.extend(split.map(|(at, record)| (offset + at, record)));
        records.extend(gathered.map(|(record, offset)| (offset, record.bytes().to_vec())));
    }
    stitched
}
