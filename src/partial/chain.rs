//! Whether the parts of a file follow each other record by record.
//!
//! Where newlines may stand in quoted fields, a part can't know where its first record begins. It says where it took it to
//! begin, and where its last one ends. The record that follows the last one of a part is the first one of the next.

use ringfold_read::{Block, Framing, Span};

use crate::partial::description::{Description, Extent, Span as Recorded};

/// What is known of spans that follow each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Spans whose records are not those that begin in them, and the byte at which the record before them ends.
    pub(crate) wrong: Vec<(usize, u64)>,
    /// Spans whose first record another span would confirm, which is missing.
    pub(crate) unconfirmed: Vec<usize>,
}

impl Chain {
    /// Of spans in the order of their sources and bytes.
    pub(crate) fn of<'a>(spans: impl IntoIterator<Item = &'a Recorded>) -> Chain {
        let mut chain = Chain::default();
        let mut reached = (0, 0);
        // Where the record ends that goes on over the end of the span before, or the next one begins.
        let mut next = Some(0);
        for (at, span) in spans.into_iter().enumerate() {
            if span.from == span.to {
                continue;
            }
            if reached != (span.source, span.from) {
                next = (span.from == 0).then_some(0);
            }
            reached = (span.source, span.to);
            let (from, to, is_settled) = match span.extent {
                Extent::Plain => {
                    next = None;
                    continue;
                }
                Extent::Empty => (None, None, false),
                Extent::Records {
                    from,
                    to,
                    is_settled,
                } => (Some(from), Some(to), is_settled),
            };
            // Nothing begins in a span that a record goes on over.
            let begins = next.map(|next| Some(next).filter(|next| *next < span.to));
            if begins.is_none() {
                chain.unconfirmed.push(at);
            }
            let wrong = next.filter(|_| begins != Some(from));
            chain.wrong.extend(wrong.map(|next| (at, next)));
            next = match begins {
                Some(None) => next,
                // What is right, or ends in the same place if it isn't.
                _ => to.filter(|_| is_settled || begins == Some(from)),
            };
        }
        chain
    }
}

/// Where the records are that a run over a part has added.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extremes {
    /// The first byte of the first one, and one past the last byte of the last.
    places: Option<[(u32, u64); 2]>,
    /// Within the part a record ends wherever the first one begins.
    is_settled: bool,
}

impl Extremes {
    /// Adds a block of a part that begins with this span of a file.
    pub(crate) fn add(&mut self, block: &Block<'_>, framing: &dyn Framing, first: Option<Span>) {
        let place = |byte| (block.file(), byte);
        let end = block.offset() + block.length();
        self.merge(Extremes {
            places: Some([place(block.offset()), place(end)]),
            is_settled: false,
        });
        let is_within = |first: &Span| first.source == block.file() && end < first.to;
        if first.as_ref().is_some_and(is_within) && !self.is_settled {
            self.is_settled = framing.effect(block.bytes()).is_constant();
        }
    }

    pub(crate) fn merge(&mut self, other: Extremes) {
        self.is_settled |= other.is_settled;
        self.places = match (self.places, other.places) {
            (Some([from, to]), Some([other_from, other_to])) => {
                Some([from.min(other_from), to.max(other_to)])
            }
            (known, other) => known.or(other),
        };
    }

    /// Notes in the description of a part where its records are.
    pub(crate) fn note(self, description: &mut Description) {
        for span in &mut description.spans {
            let bytes = description.sources[span.source as usize].bytes;
            if (span.from, span.to) == (0, bytes) || span.from == span.to {
                continue;
            }
            let [first, last] = self.places.unwrap_or_default();
            let first = match span.from {
                0 => Some(0),
                from => Some(first.1)
                    .filter(|at| first.0 == span.source && (from..span.to).contains(at)),
            };
            let end = match span.to == bytes {
                true => bytes,
                false => last.1,
            };
            span.extent = match first {
                Some(from) => Extent::Records {
                    from,
                    to: end,
                    is_settled: self.is_settled,
                },
                None => Extent::Empty,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(source: u32, bytes: [u64; 2], records: Option<[u64; 2]>) -> Recorded {
        Recorded {
            source,
            from: bytes[0],
            to: bytes[1],
            part: 1,
            parts: 9,
            division: 1,
            extent: match records {
                Some([from, to]) => Extent::Records {
                    from,
                    to,
                    is_settled: false,
                },
                None => Extent::Empty,
            },
        }
    }

    fn settled(span: Recorded) -> Recorded {
        let Extent::Records { from, to, .. } = span.extent else {
            panic!("it has records");
        };
        let is_settled = true;
        let extent = Extent::Records {
            from,
            to,
            is_settled,
        };
        Recorded { extent, ..span }
    }

    fn of(spans: &[Recorded]) -> (Vec<(usize, u64)>, Vec<usize>) {
        let chain = Chain::of(spans);
        (chain.wrong, chain.unconfirmed)
    }

    #[test]
    fn each_part_begins_where_the_one_before_ends() {
        let first = span(0, [0, 10], Some([0, 12]));
        let right = span(0, [10, 20], Some([12, 25]));
        let last = span(0, [20, 30], Some([25, 30]));
        assert_eq!(of(&[first, right, last]), (vec![], vec![]));
        let other = span(1, [0, 5], Some([0, 5]));
        assert_eq!(of(&[first, right, last, other]), (vec![], vec![]));
        // Where a wrong part ends is not known, unless it ends there in any case.
        let wrong = span(0, [10, 20], Some([11, 26]));
        assert_eq!(of(&[first, wrong, last]), (vec![(1, 12)], vec![2]));
        let got = of(&[first, settled(wrong), last]);
        assert_eq!(got, (vec![(1, 12), (2, 26)], vec![]));
        let wrong = span(0, [10, 20], None);
        assert_eq!(of(&[first, wrong, last]), (vec![(1, 12)], vec![2]));
    }

    #[test]
    fn a_record_goes_on_over_whole_parts() {
        let first = span(0, [0, 10], Some([0, 33]));
        let empty = |from| span(0, [from, from + 10], None);
        let last = span(0, [30, 40], Some([33, 40]));
        assert_eq!(of(&[first, empty(10), empty(20), last]), (vec![], vec![]));
        let wrong = span(0, [10, 20], Some([15, 22]));
        let also = span(0, [20, 30], Some([22, 30]));
        let got = of(&[first, wrong, also, last]);
        assert_eq!(got, (vec![(1, 33), (2, 33)], vec![]));
    }

    #[test]
    fn what_follows_a_gap_is_not_confirmed() {
        let first = span(0, [0, 10], Some([0, 12]));
        let third = span(0, [20, 30], Some([25, 31]));
        let fourth = span(0, [30, 40], Some([31, 40]));
        assert_eq!(of(&[first, third, fourth]), (vec![], vec![1, 2]));
        let other = span(0, [30, 40], Some([34, 40]));
        assert_eq!(of(&[first, third, other]), (vec![], vec![1, 2]));
        let third = settled(third);
        assert_eq!(of(&[first, third, fourth]), (vec![], vec![1]));
        assert_eq!(of(&[first, third, other]), (vec![(2, 31)], vec![1]));
        let empty = span(0, [20, 30], None);
        assert_eq!(of(&[empty, fourth]), (vec![], vec![0, 1]));
    }
}
