//! Any text, cut into spans and pieces anywhere, arriving in any order, with any spare bytes behind a
//! piece, lines or records whose quoted newlines don't count: every record is released once, whole,
//! with its offset. Over a limit, a record that is over it is reported, and no other is torn. The same as a stream brings
//! it: in order, in reads of any length, the whole records of which are released at once.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ringfold::internals::{Oversized, Piece, Release, Stitcher};
use ringfold::{Delimited, Framing, Quoted, State};

#[derive(Arbitrary, Debug)]
struct Case {
    /// Bytes of a piece.
    block: u8,
    /// Room behind it.
    spare: u8,
    /// Where the second span begins.
    cut: u16,
    quoted: bool,
    /// Whether it comes as a stream.
    flows: bool,
    /// How many pieces of a span arrive before the state at its start is known.
    known: u8,
    /// The longest record, if there is a limit.
    max_record: Option<u8>,
    /// Which of the pieces that are left arrives next.
    order: Vec<u8>,
    text: Vec<u8>,
}

struct Buffer {
    bytes: Vec<u8>,
    capacity: usize,
}

impl Piece for Buffer {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    fn append(&mut self, more: &[u8]) -> bool {
        let fits = self.bytes.len() + more.len() <= self.capacity;
        if fits {
            self.bytes.extend_from_slice(more);
        }
        fits
    }
}

/// Where records end, byte by byte, by the rules of RFC 4180: the oracle of [`Quoted`].
fn quoted_ends(text: &[u8]) -> Vec<usize> {
    let (mut within, mut closing, mut field) = (false, false, true);
    let mut ends = Vec::new();
    let begin = if text.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    for (at, &byte) in text.iter().enumerate().skip(begin) {
        if within && !closing {
            closing = byte == b'"';
            continue;
        }
        if byte == b'"' && (field || closing) {
            // It opens the field, or is doubled.
            (within, closing) = (true, false);
        } else {
            (within, closing) = (false, false);
            if byte == b'\n' {
                ends.push(at + 1);
            }
        }
        field = matches!(byte, b',' | b'\n') && !within;
    }
    ends
}

/// A record with its offset.
type Record = (u64, Vec<u8>);

fuzz_target!(|case: Case| {
    let text = &case.text[..];
    let cut = usize::from(case.cut).min(text.len());
    let mut records = Vec::new();
    let framing: &dyn Framing = match case.quoted {
        true => &Quoted::CSV,
        false => &Delimited::NEWLINE,
    };
    let stitched = match case.flows {
        true => flow(&case, framing, &mut records),
        false => serve(&case, framing, 0..cut, &mut records)
            .and_then(|()| serve(&case, framing, cut..text.len(), &mut records)),
    };
    records.sort();
    let expected = match case.quoted {
        true => split(quoted_ends(text).into_iter(), text),
        false => split((1..=text.len()).filter(|&end| text[end - 1] == b'\n'), text),
    };
    match stitched {
        Ok(()) => assert_eq!(records, expected, "records lost, torn or doubled"),
        Err(Oversized { offset, .. }) => {
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
fn serve(
    case: &Case,
    framing: &dyn Framing,
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
        let capacity = bytes.len() + usize::from(case.spare);
        // The last record end of the span is looked for from its last byte on.
        let last = span.end - 1;
        let cut = (span.end < text.len() && to > last).then(|| last.saturating_sub(from));
        (Buffer { bytes, capacity }, from as u64, cut)
    };
    let max_record = case.max_record.map_or(usize::MAX, usize::from);
    let mut stitcher = Stitcher::new(framing, max_record, own_start);
    let mut out = Vec::new();
    let inside = starts.iter().take_while(|&&start| start < span.end).count();
    let mut left: Vec<usize> = (0..inside).collect();
    let mut order = case.order.iter().copied();
    let arrive = |stitcher: &mut Stitcher<'_, Buffer>, index: usize, out: &mut Vec<_>| {
        let (piece, offset, cut) = piece_at(index);
        let effect = framing.effect(piece.bytes());
        stitcher.arrive(index as u64, piece, offset, cut, effect, out)
    };
    // What others have found of the bytes before the span, known when so many of its pieces have arrived.
    let state = framing.effect(&text[..first]).apply(framing.initial());
    let known_at = usize::from(case.known) % (inside + 1);
    let mut stitch = |out: &mut Vec<_>| {
        for arrived in 0..inside {
            if !own_start && arrived == known_at {
                stitcher.begin(state, out)?;
            }
            let next = usize::from(order.next().unwrap_or(0)) % left.len();
            arrive(&mut stitcher, left.remove(next), out)?;
        }
        if !own_start && known_at == inside {
            stitcher.begin(state, out)?;
        }
        let mut next = inside;
        while next < starts.len() && stitcher.take_wanted() == Some(next as u64) {
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
    gather(framing, out, records);
    stitched
}

/// Stitches the text as the dispatcher does with a stream, and adds its records.
fn flow(case: &Case, framing: &dyn Framing, records: &mut Vec<Record>) -> Result<(), Oversized> {
    let text = &case.text[..];
    let block = usize::from(case.block).max(1);
    let max_record = case.max_record.map_or(usize::MAX, usize::from);
    let mut stitcher = Stitcher::new(framing, max_record, true);
    let mut out = Vec::new();
    let mut sizes = case.order.iter().copied();
    // What has come lies in `from..to`; a piece begins at `from`.
    let (mut from, mut to, mut index) = (0, 0, 0);
    let mut stitch = |out: &mut Vec<_>| {
        while to < text.len() {
            let read = usize::from(sizes.next().unwrap_or(u8::MAX)).max(1);
            to = text.len().min(to + read).min(from + block);
            let state = stitcher.state().expect("all before it has arrived");
            let end = framing.last_end(state, &text[from..to]);
            let full = to == from + block;
            if end.is_none() && !full {
                continue;
            }
            let end = from + end.unwrap_or(block);
            let bytes = text[from..end].to_vec();
            let effect = framing.effect(&bytes);
            let capacity = bytes.len() + usize::from(case.spare);
            let piece = Buffer { bytes, capacity };
            let ends = framing.last_end(state, piece.bytes()).is_some();
            // That a piece ends a record may be left unsaid.
            if ends && !(full && case.known.is_multiple_of(2)) {
                stitcher.arrive_whole(index, piece, from as u64, out)?;
                let came: usize = out.iter().map(length).sum();
                assert_eq!(came, end, "a whole record is kept back");
            } else {
                stitcher.arrive(index, piece, from as u64, None, effect, out)?;
            }
            (from, index) = (end, index + 1);
        }
        if from < to {
            let bytes = text[from..to].to_vec();
            let effect = framing.effect(&bytes);
            let capacity = bytes.len() + usize::from(case.spare);
            let piece = Buffer { bytes, capacity };
            stitcher.arrive(index, piece, from as u64, None, effect, out)?;
            index += 1;
        }
        stitcher.finish(index, out)?;
        assert!(stitcher.is_done(), "pieces were kept back");
        Ok(())
    };
    let stitched = stitch(&mut out);
    if stitched.is_err() {
        stitcher.abandon(&mut out);
    }
    gather(framing, out, records);
    stitched
}

fn length(release: &Release<Buffer>) -> usize {
    let gathered = release.gathered.as_ref();
    release.range.len() + gathered.map_or(0, |record| record.bytes.len())
}

/// Adds the records of what was released.
fn gather(framing: &dyn Framing, out: Vec<Release<Buffer>>, records: &mut Vec<Record>) {
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
        let mut state = match offset {
            0 => framing.initial(),
            _ => State::START,
        };
        while let Some(end) = framing.first_end(state, &bytes[from..]) {
            from += end;
            ends.push(from);
            state = State::START;
        }
        let split = split(ends.into_iter(), bytes).into_iter();
        records.extend(split.map(|(at, record)| (offset + at, record)));
        records.extend(gathered.map(|record| (record.offset, record.bytes.bytes().to_vec())));
    }
}
