//! Any text, cut into spans and pieces anywhere, arriving in any order, with any room behind a
//! piece: every record is released once, whole, with its offset.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ringfold::Delimited;
use ringfold::stitch::{Oversized, Piece, Release, Stitcher};

#[derive(Arbitrary, Debug)]
struct Case {
    /// Bytes of a piece.
    block: u8,
    /// Room behind it.
    spare: u8,
    /// Where the second span begins.
    cut: u16,
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

fuzz_target!(|case: Case| {
    let text = &case.text[..];
    let block = usize::from(case.block).max(1);
    let cut = usize::from(case.cut).min(text.len());
    let mut records: Vec<(u64, Vec<u8>)> = Vec::new();
    for span in [0..cut, cut..text.len()] {
        if !span.is_empty() {
            serve(&case, block, span, &mut records);
        }
    }
    records.sort();
    let mut at = 0;
    let expected = text.split_inclusive(|&byte| byte == b'\n').map(|record| {
        let start = at;
        at += record.len() as u64;
        (start, record.to_vec())
    });
    assert!(
        records.into_iter().eq(expected),
        "records lost, torn or doubled"
    );
});

/// Stitches a span as an engine would, and adds its records.
fn serve(
    case: &Case,
    block: usize,
    span: std::ops::Range<usize>,
    records: &mut Vec<(u64, Vec<u8>)>,
) {
    let text = &case.text[..];
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
    let mut stitcher = Stitcher::new(Delimited::NEWLINE, usize::MAX, own_start);
    let mut out = Vec::new();
    let inside = starts.iter().take_while(|&&start| start < span.end).count();
    let mut left: Vec<usize> = (0..inside).collect();
    let mut order = case.order.iter().copied();
    while !left.is_empty() {
        let next = usize::from(order.next().unwrap_or(0)) % left.len();
        let index = left.remove(next);
        let (piece, offset, cut) = piece_at(index);
        let arrived = stitcher.arrive(index as u64, piece, offset, cut, &mut out);
        assert_eq!(arrived, Ok::<(), Oversized>(()));
    }
    let mut next = inside;
    while next < starts.len() && stitcher.wants(next as u64) {
        let (piece, offset, cut) = piece_at(next);
        stitcher
            .arrive(next as u64, piece, offset, cut, &mut out)
            .expect("no limit");
        next += 1;
    }
    if stitcher.end().is_none() {
        stitcher.finish(next as u64, &mut out).expect("no limit");
    }
    assert!(stitcher.is_done(), "pieces were kept back");
    for Release {
        piece,
        range,
        offset,
        gathered,
        ..
    } in out
    {
        let mut at = offset;
        for record in piece.bytes()[range].split_inclusive(|&byte| byte == b'\n') {
            records.push((at, record.to_vec()));
            at += record.len() as u64;
        }
        records.extend(gathered.map(|(record, offset)| (offset, record.bytes().to_vec())));
    }
}
