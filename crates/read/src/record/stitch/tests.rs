use crate::record::framing::{Delimited, texts};
use crate::record::quoted::Quoted;
use crate::record::stitch::*;

/// A piece with `spare` bytes after what was read.
#[derive(Debug, Clone)]
struct Buf {
    bytes: Vec<u8>,
    spare: usize,
}

impl Piece for Buf {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
    fn append(&mut self, more: &[u8]) -> bool {
        let fits = more.len() <= self.spare;
        if fits {
            self.spare -= more.len();
            self.bytes.extend_from_slice(more);
        }
        fits
    }
}

/// The oracle: offsets and bytes of all records whose first byte lies in `from..to`.
fn records(framing: &dyn Framing, text: &[u8], from: usize, to: usize) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let state = framing.at_record(at as u64);
        let end = framing
            .first_end(state, &text[at..])
            .map_or(text.len(), |e| at + e);
        if (from..to).contains(&at) {
            found.push((at as u64, text[at..end].to_vec()));
        }
        at = end;
    }
    found
}

/// Feeds a span in blocks in the given order, as the dispatcher does.
fn stitch(
    framing: &dyn Framing,
    text: &[u8],
    (from, to): (usize, usize),
    block: usize,
    spare: usize,
    order: &[usize],
) -> Vec<(u64, Vec<u8>)> {
    let start = from.saturating_sub(1);
    let cut = (to < text.len()).then(|| to - 1);
    let pieces = to.div_ceil(block).max(start / block + 1) - start / block;
    let mut stitcher = Stitcher::new(framing, 1000, from == 0);
    let mut out = Vec::new();
    let bounds = |index: usize| {
        let begin = (start / block + index) * block;
        (begin.max(start), (begin + block).min(text.len()))
    };
    if cut.is_none() {
        stitcher.finish(pieces as u64, &mut out).unwrap();
    }
    let arrive = |stitcher: &mut Stitcher<'_, Buf>, index: usize, out: &mut Vec<_>| {
        let (begin, end) = bounds(index);
        let cut = cut
            .filter(|&cut| cut < end)
            .map(|cut| cut.max(begin) - begin);
        let piece = Buf {
            bytes: text[begin..end].to_vec(),
            spare,
        };
        let effect = framing.effect(&piece.bytes);
        stitcher
            .arrive(index as u64, piece, begin as u64, cut, effect, out)
            .unwrap();
    };
    // The state at the span's start becomes known at any moment: here in the middle.
    let state = framing.effect(&text[..start]).apply(framing.initial());
    let known = order.len() / 2;
    for (n, &index) in order.iter().enumerate() {
        if n == known && from > 0 {
            stitcher.begin(state, &mut out).unwrap();
        }
        arrive(&mut stitcher, index, &mut out);
    }
    for index in pieces.. {
        if stitcher.end().is_some() {
            break;
        }
        if bounds(index).0 >= text.len() {
            stitcher.finish(index as u64, &mut out).unwrap();
            break;
        }
        arrive(&mut stitcher, index, &mut out);
    }
    assert!(stitcher.is_done(), "a piece was left behind");
    let mut blocks = blocks(out);
    blocks.sort();
    blocks
}

fn blocks(released: Vec<Release<Buf>>) -> Vec<(u64, Vec<u8>)> {
    let mut blocks = Vec::new();
    for Release {
        piece,
        range,
        offset,
        gathered,
        ..
    } in released
    {
        assert!(!range.is_empty() || gathered.is_some(), "nothing in it");
        blocks.push((offset, piece.bytes[range].to_vec()));
        blocks.extend(gathered.map(|record| (record.offset, record.bytes.bytes().to_vec())));
    }
    blocks.retain(|(_, bytes)| !bytes.is_empty());
    blocks
}

fn joined(blocks: &[(u64, Vec<u8>)]) -> (u64, Vec<u8>) {
    for pair in blocks.windows(2) {
        assert_eq!(
            pair[0].0 + pair[0].1.len() as u64,
            pair[1].0,
            "a gap or an overlap"
        );
    }
    let first = blocks.first().map_or(0, |(offset, _)| *offset);
    (
        first,
        blocks.iter().flat_map(|(_, bytes)| bytes.clone()).collect(),
    )
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for i in 0..n {
        all = all
            .into_iter()
            .flat_map(|p: Vec<usize>| {
                (0..=p.len()).map(move |at| {
                    let mut q = p.clone();
                    q.insert(at, i);
                    q
                })
            })
            .collect();
    }
    all
}

/// Every text x span x block size x spare bytes x order of arrival, for one framing.
fn exhaust(framing: &dyn Framing, alphabet: &[u8], max: usize) {
    // Miri takes a thousand times as long.
    let (max, enough) = if cfg!(miri) { (2, 20) } else { (max, 1_000) };
    let mut cases = 0u64;
    let orders: Vec<_> = (0..=max).map(permutations).collect();
    for text in texts(alphabet, max) {
        for from in 0..text.len() {
            for to in from + 1..=text.len() {
                let want = records(framing, &text, from, to);
                let want_joined = joined(&want);
                for block in 1..=text.len().min(4) {
                    let start = from.saturating_sub(1);
                    let pieces = to.div_ceil(block).max(start / block + 1) - start / block;
                    for spare in [0, 1, 100] {
                        for order in &orders[pieces] {
                            let got = stitch(framing, &text, (from, to), block, spare, order);
                            for (offset, bytes) in &got {
                                let end = *offset + bytes.len() as u64;
                                let starts = want.iter().any(|(o, _)| o == offset);
                                let stops = want.iter().any(|(o, b)| o + b.len() as u64 == end);
                                assert!(
                                    starts && stops,
                                    "not whole: {text:?} {from}..{to} {got:?}"
                                );
                            }
                            assert_eq!(
                                joined(&got),
                                want_joined,
                                "{text:?} {from}..{to} block {block} spare {spare} {order:?}"
                            );
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(cases > enough, "only {cases} cases");
}

#[test]
fn every_small_case_of_lines() {
    exhaust(&Delimited::NEWLINE, b"a\n", 6);
}

#[test]
fn every_small_case_where_every_byte_is_a_record() {
    exhaust(&Delimited::EVERY_BYTE, b"a", 6);
}

#[test]
fn every_small_case_of_a_framing_with_state() {
    exhaust(&Quoted::CSV, b",\"\n", 5);
    exhaust(&Quoted::CSV, b"a\"\n", 5);
}

/// Every text x cut into pieces x choice of which pieces that end a record are said to: as a stream brings them.
fn flow(framing: &dyn Framing, alphabet: &[u8], max: usize) {
    let max = if cfg!(miri) { 3 } else { max };
    for text in texts(alphabet, max)
        .into_iter()
        .filter(|text| !text.is_empty())
    {
        let all = records(framing, &text, 0, text.len());
        let ends: Vec<_> = all
            .iter()
            .map(|(at, bytes)| *at as usize + bytes.len())
            .collect();
        let whole = |end| {
            let begun = framing.at_record(0);
            ends.contains(&end) && framing.last_end(begun, &text[..end]) == Some(end)
        };
        let most = 1u32 << (text.len() - 1);
        for (cuts, marks) in (0..most).flat_map(|cuts| (0..2 * most).map(move |m| (cuts, m))) {
            // A mark beside a cut that ends no record is the same case as without it.
            let is_cut = |end: usize| end == text.len() || cuts >> (end - 1) & 1 == 1;
            let is_marked = |end: usize| marks >> (end - 1) & 1 == 1;
            let mut all_ends = 1..=text.len();
            if !all_ends.all(|end| !is_marked(end) || is_cut(end) && whole(end)) {
                continue;
            }
            for spare in [0, 100] {
                let mut stitcher = Stitcher::new(framing, 1000, true);
                let (mut out, mut index, mut from) = (Vec::new(), 0, 0);
                for end in (1..=text.len()).filter(|&end| is_cut(end)) {
                    let bytes = text[from..end].to_vec();
                    let effect = framing.effect(&bytes);
                    let (piece, at) = (Buf { bytes, spare }, from as u64);
                    if is_marked(end) {
                        stitcher.arrive_whole(index, piece, at, &mut out).unwrap();
                        let came: usize = out.iter().map(length).sum();
                        assert_eq!(came, end, "{text:?} {cuts:b} {marks:b}: kept back");
                    } else {
                        stitcher
                            .arrive(index, piece, at, None, effect, &mut out)
                            .unwrap();
                    }
                    (index, from) = (index + 1, end);
                }
                stitcher.finish(index, &mut out).unwrap();
                assert!(stitcher.is_done());
                let got = blocks(out);
                let starts = |(at, _): &(u64, _)| all.iter().any(|(start, _)| start == at);
                assert!(
                    got.iter().all(starts),
                    "{text:?} {cuts:b} {marks:b}: {got:?}"
                );
                assert_eq!(joined(&got), (0, text.clone()), "{cuts:b} {marks:b}");
            }
        }
    }
}

fn length(release: &Release<Buf>) -> usize {
    let gathered = release
        .gathered
        .as_ref()
        .map_or(0, |record| record.bytes.len());
    release.range.len() + gathered
}

#[test]
fn pieces_that_end_a_record_wait_for_nothing() {
    flow(&Delimited::NEWLINE, b"a\n", 6);
    flow(&Delimited::EVERY_BYTE, b"a", 6);
    flow(&Quoted::CSV, b"a\"\n", 5);
}

#[test]
fn a_record_over_the_limit_is_told_and_what_stands_before_it_delivered() {
    let text = b"ok\nlooooooooooooooooong\nnever\n";
    for block in 1..8 {
        let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 5, true);
        let mut out = Vec::new();
        let mut failed = None;
        for (index, bytes) in text.chunks(block).enumerate() {
            let piece = Buf {
                bytes: bytes.to_vec(),
                spare: 0,
            };
            let offset = (index * block) as u64;
            if let Err(over) =
                stitcher.arrive(index as u64, piece, offset, None, Effect::NONE, &mut out)
            {
                failed.get_or_insert(over.offset);
            }
        }
        assert_eq!(failed, Some(3), "block {block}");
        stitcher.abandon(&mut out);
        let before: Vec<u8> = blocks(out)
            .into_iter()
            .flat_map(|(_, bytes)| bytes)
            .collect();
        assert_eq!(before, b"ok\n", "block {block}");
    }
}

#[test]
fn more_is_wanted_only_while_it_could_add_something() {
    let piece = |bytes: &str, spare| Buf {
        bytes: bytes.into(),
        spare,
    };
    let mut out = Vec::new();
    // A span of two bytes, whose record goes on after it.
    let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 3, true);
    let begin = stitcher.arrive(0, piece("ab", 9), 0, Some(1), Effect::NONE, &mut out);
    assert_eq!(
        (begin, stitcher.end(), stitcher.take_wanted()),
        (Ok(()), None, Some(1))
    );
    let end = stitcher.arrive(1, piece("c\nd", 9), 2, Some(0), Effect::NONE, &mut out);
    assert_eq!((end, stitcher.end()), (Ok(()), Some(2)));
    assert!(stitcher.take_wanted().is_none() && stitcher.is_done());
    assert_eq!(blocks(std::mem::take(&mut out)), [(0, b"abc\n".to_vec())]);

    let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 3, true);
    let begin = stitcher.arrive(0, piece("ab", 0), 0, Some(1), Effect::NONE, &mut out);
    assert_eq!((begin, stitcher.take_wanted()), (Ok(()), Some(1)));
    let over = stitcher.arrive(1, piece("cd", 0), 2, Some(0), Effect::NONE, &mut out);
    let has_nuls = false;
    assert_eq!(
        over,
        Err(Oversized {
            offset: 0,
            has_nuls
        })
    );
    assert_eq!(stitcher.take_wanted(), None, "the record is over the limit");
    let behind = stitcher.arrive(2, piece("\ne\n", 9), 4, Some(0), Effect::NONE, &mut out);
    stitcher.abandon(&mut out);
    assert_eq!((behind, blocks(std::mem::take(&mut out))), (Ok(()), vec![]));

    // No record begins in a span that lies within one.
    let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 3, false);
    let within = stitcher.arrive(0, piece("ab", 9), 5, Some(1), Effect::NONE, &mut out);
    assert_eq!(
        (within, stitcher.end(), stitcher.take_wanted()),
        (Ok(()), None, None)
    );
}

#[test]
fn a_piece_that_never_comes_costs_only_its_neighbours() {
    let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 100, true);
    let mut out = Vec::new();
    for (index, bytes) in [(0, "a\nb"), (2, "c\nd\ne"), (3, "f\n")] {
        let piece = Buf {
            bytes: bytes.into(),
            spare: 9,
        };
        stitcher
            .arrive(index, piece, index * 10, None, Effect::NONE, &mut out)
            .unwrap();
    }
    assert!(out.is_empty(), "piece 3 has no end yet, 0 and 2 wait for 1");
    stitcher.abandon(&mut out);
    let got = blocks(out);
    assert_eq!(got, [(0, b"a\n".to_vec()), (22, b"d\nef\n".to_vec())]);
}

#[test]
fn a_record_gathered_apart_is_abandoned_unless_it_is_whole() {
    let stitched = |pieces: &[(u64, &str)]| {
        let mut stitcher = Stitcher::new(&Delimited::NEWLINE, 100, true);
        let mut out = Vec::new();
        for &(index, bytes) in pieces {
            let bytes = bytes.into();
            let piece = Buf { bytes, spare: 0 };
            stitcher
                .arrive(index, piece, index * 10, None, Effect::NONE, &mut out)
                .unwrap();
        }
        stitcher.abandon(&mut out);
        blocks(out)
    };
    let part = stitched(&[(0, "a\nbc"), (1, "de")]);
    assert_eq!(part, [(0, b"a\n".to_vec())], "its end never came");
    let whole = stitched(&[(1, "a\nbc"), (2, "de\nf")]);
    assert_eq!(whole, [(12, b"bcde\n".to_vec())]);
}
