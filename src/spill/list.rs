//! Lists of a group's values: the most frequent ones, all different ones, and how often each is there. What is kept of them is
//! JSON.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::aggregate::definition::List;
use crate::decimal::number::{Grammar, Number};
use crate::report::grid::push_json_text;

/// The most values of a list that has all of them, and their most bytes.
const VALUES_MAX: usize = 10_000;
const BYTES_MAX: usize = 1 << 20;

/// A list in the making. The heap's first entry is the last of the list: the one that is there least often, or the greatest.
pub(super) struct Listing {
    list: List,
    entries: BinaryHeap<(Reverse<u64>, Vec<u8>)>,
    bytes: usize,
}

impl Listing {
    pub(super) fn new(list: List) -> Listing {
        Listing {
            list,
            entries: BinaryHeap::new(),
            bytes: 0,
        }
    }

    /// Adds a value that is there so many times.
    ///
    /// # Errors
    /// Why there is no list.
    pub(super) fn add(&mut self, value: &[u8], times: u64) -> Result<(), String> {
        if times == 0 {
            return Ok(());
        }
        if let List::Top(most) = self.list {
            let last = self.entries.peek();
            let is_after = |(rank, last): &(Reverse<u64>, Vec<u8>)| {
                (Reverse(times), value) >= (*rank, &last[..])
            };
            let is_full = self.entries.len() == most as usize;
            if is_full && last.is_some_and(is_after) {
                return Ok(());
            }
            if is_full {
                self.entries.pop();
            }
        }
        self.bytes += value.len();
        self.entries.push((Reverse(times), value.to_vec()));
        let is_long = self.entries.len() > VALUES_MAX || self.bytes > BYTES_MAX;
        match self.list {
            List::Values if is_long => Err(format!(
                "a group, or the row over all of them, has more than {VALUES_MAX} different values or {BYTES_MAX} bytes of them, the \
                 most that `values` lists: ask for `distinct` to count them, or for `top10` to list the most frequent ones"
            )),
            List::Histogram if is_long => Err(format!(
                "a group, or the row over all of them, has more than {VALUES_MAX} bins, the most that `histogram` lists: ask for \
                 a greater width"
            )),
            _ => Ok(()),
        }
    }

    /// The list; empty where there are no values.
    pub(super) fn json(self) -> Vec<u8> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        let mut entries = self.entries.into_sorted_vec();
        if !matches!(self.list, List::Top(_)) {
            let number = |value: &[u8]| Number::read_as(value, Grammar::FLOAT).ok();
            let numbers: Option<Vec<Number>> =
                entries.iter().map(|(_, value)| number(value)).collect();
            match numbers {
                Some(numbers) => {
                    let mut ranked: Vec<_> = numbers.into_iter().zip(entries).collect();
                    ranked.sort_unstable_by(|(one, (_, own)), (two, (_, other))| {
                        one.cmp(two).then_with(|| own.cmp(other))
                    });
                    entries = ranked.into_iter().map(|(_, entry)| entry).collect();
                }
                None => entries.sort_unstable_by(|(_, one), (_, two)| one.cmp(two)),
            }
        }
        let has_counts = self.list != List::Values;
        let mut json = Vec::new();
        for (Reverse(times), value) in entries {
            json.push(match (json.is_empty(), has_counts) {
                (false, _) => b',',
                (true, true) => b'{',
                (true, false) => b'[',
            });
            push_json_text(&value, &mut json);
            if has_counts {
                json.push(b':');
                json.extend_from_slice(times.to_string().as_bytes());
            }
        }
        json.push(if has_counts { b'}' } else { b']' });
        json
    }
}
