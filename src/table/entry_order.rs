//! Entries in the order of their keys: those of one size are sorted where they lie.

use rayon::prelude::*;

use crate::table::entries::{EntryRef, EntryTable, Lanes, UNIT, Unit, bytes_of};
use crate::table::pages::Pages;

/// Entries of one size in the order of their keys, without the byte after each.
pub(crate) struct EntryOrder {
    units: Pages<Unit>,
    used: usize,
    lane_units: usize,
    key_units: usize,
    orders: Orders,
}

/// Orders that entries are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orders {
    /// That of their keys' bytes.
    pub(crate) bytes: bool,
    /// That of their keys' numbers: each is whole and without a sign or zeros that it doesn't need.
    pub(crate) numbers: bool,
}

impl EntryOrder {
    /// The entries of these tables, where the keys of all take as many units and these are few. Otherwise the tables are as
    /// before. They are in the order of numbers if all keys are numbers and `may_be_numbers`, else in that of bytes.
    pub(crate) fn new(tables: &mut Vec<EntryTable>, may_be_numbers: bool) -> Option<EntryOrder> {
        let (lane_units, key_units) = tables.first()?.entry_size();
        let is_like = |table: &EntryTable| table.entry_size() == (lane_units, key_units);
        let key_units = key_units.filter(|_| tables.iter().all(is_like))?;
        let sort: fn(&mut [Unit], bool) -> Orders = match (lane_units, key_units) {
            (1, 1) => sort::<2, 1>,
            (2, 1) => sort::<3, 1>,
            (3, 1) => sort::<4, 1>,
            (4, 1) => sort::<5, 1>,
            (1, 2) => sort::<3, 2>,
            (2, 2) => sort::<4, 2>,
            (3, 2) => sort::<5, 2>,
            _ => return None,
        };
        let mut all = std::mem::take(tables)
            .into_iter()
            .map(EntryTable::into_units);
        let (mut units, mut used) = all.next()?;
        for (from, count) in all {
            if used + count > units.len() {
                units.grow((used + count).next_power_of_two());
            }
            units[used..used + count].copy_from_slice(&from[..count]);
            used += count;
        }
        let orders = sort(&mut units[..used], may_be_numbers);
        Some(EntryOrder {
            units,
            used,
            lane_units,
            key_units,
            orders,
        })
    }

    /// The orders that the entries are in.
    pub(crate) fn orders(&self) -> Orders {
        self.orders
    }

    /// The entries.
    pub(crate) fn entries(&self) -> impl IndexedParallelIterator<Item = EntryRef> {
        let size = self.lane_units + self.key_units;
        let entries = (0..self.used / size).into_par_iter();
        entries.map(move |at| EntryRef::new((at * size) as u32, self.key_units))
    }

    /// The lanes of the entry at a place, and perhaps one more.
    pub(crate) fn lanes(&self, place: u32) -> &[i64] {
        self.units[place as usize..][..self.lane_units].as_flattened_lanes()
    }

    /// An entry's key, without the byte after it.
    pub(crate) fn key(&self, entry: EntryRef) -> &[u8] {
        let from = entry.place() as usize + self.lane_units;
        let units = &self.units[from..from + entry.key_units()];
        let last = units[units.len() - 1].bytes();
        &bytes_of(units)[..(units.len() - 1) * UNIT + usize::from(last[UNIT - 1])]
    }
}

/// Sorts entries of `SIZE` units by their keys of `KEY` units.
fn sort<const SIZE: usize, const KEY: usize>(units: &mut [Unit], may_be_numbers: bool) -> Orders {
    let (entries, _) = units.as_chunks_mut::<SIZE>();
    // The byte after a key isn't a part of it. In its place stands, in the last byte of the key's units, how many bytes the
    // key has in the last of these: of two with the same bytes, because keys may end with zeros, the shorter comes first.
    let lengths = entries.par_iter_mut().map(|entry| {
        let last = &mut entry[SIZE - 1];
        let mut bytes = last.bytes();
        let length = last.length() - 1;
        bytes[length] = 0;
        bytes[UNIT - 1] = length as u8;
        *last = Unit::of(bytes);
        Lengths::of_key(&bytes_of(&entry[SIZE - KEY..])[..(KEY - 1) * UNIT + length])
    });
    let lengths = lengths.reduce_with(Lengths::with);
    let are_numbers = lengths.is_some_and(|lengths| lengths.are_numbers);
    let are_alike = lengths.is_none_or(|lengths| lengths.least == lengths.most);
    let key = |entry: &[Unit; SIZE]| -> [u128; KEY] {
        std::array::from_fn(|at| u128::from_be_bytes(entry[SIZE - KEY + at].bytes()))
    };
    // Of whole numbers the longer is the greater. The length is the last byte.
    if may_be_numbers && are_numbers && !are_alike && KEY == 1 {
        entries.par_sort_unstable_by_key(|entry| key(entry)[0].rotate_right(8));
        return Orders {
            bytes: false,
            numbers: true,
        };
    }
    entries.par_sort_unstable_by(|one, other| key(one).cmp(&key(other)));
    Orders {
        bytes: true,
        numbers: are_numbers && are_alike,
    }
}

/// The lengths of keys, and whether all are whole numbers without a sign or zeros that they don't need.
#[derive(Clone, Copy)]
struct Lengths {
    least: usize,
    most: usize,
    are_numbers: bool,
}

impl Lengths {
    fn of_key(key: &[u8]) -> Lengths {
        let is_short = key.len() == 1 || key.first() != Some(&b'0');
        Lengths {
            least: key.len(),
            most: key.len(),
            are_numbers: is_short && key.iter().all(u8::is_ascii_digit),
        }
    }

    fn with(self, other: Lengths) -> Lengths {
        Lengths {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            are_numbers: self.are_numbers && other.are_numbers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::entries::Key;
    use crate::table::isa::Seeds;
    use crate::table::key_order::KeyOrder;
    use ringfold_read::internals::Level;

    fn sorted(keys: &[String], may_be_numbers: bool) -> (Vec<String>, Orders) {
        let seeds = Seeds::random();
        let mut tables = vec![EntryTable::new(3, false), EntryTable::part(3)];
        for (at, key) in keys.iter().enumerate() {
            let key = Key::of(format!("{key};").as_bytes()).unwrap();
            let tag = key.tag(Level::Portable, &seeds);
            tables[at % 2].add(
                tag,
                &key,
                &[1, 0, key.short().unwrap().0[0].into()],
                |_, _| false,
            );
        }
        let order = EntryOrder::new(&mut tables, may_be_numbers).unwrap();
        let key = |entry: EntryRef| {
            let key = order.key(entry);
            let first = key.first().copied().unwrap_or(b';');
            assert_eq!(order.lanes(entry.place())[..3], [1, 0, first.into()]);
            String::from_utf8(key.to_vec()).unwrap()
        };
        (order.entries().map(key).collect(), order.orders())
    }

    #[test]
    fn keys_are_in_order() {
        let numbers = |from: u64, step: u64| -> Vec<String> {
            let numbers = (0..if cfg!(miri) { 20 } else { 500 }).map(|at| from + at * step % 997);
            numbers.map(|number| number.to_string()).collect()
        };
        let with = |mut keys: Vec<String>, key: &str| {
            keys.push(key.into());
            keys
        };
        let cases = [
            // Keys, and whether they are whole numbers, of one length, and of at most 15 digits.
            (numbers(0, 7), true, false, true),
            (with(numbers(0, 7), "999999999999999"), true, false, true),
            (with(numbers(1, 7), ""), true, false, true),
            (numbers(5000, 3), true, true, true),
            (numbers(1_234_567_890_123_456_789, 3), true, true, false),
            (numbers(9_999_999_999_999_999_500, 3), true, false, false),
            (with(numbers(1, 7), "x"), false, false, true),
            (with(numbers(1, 7), "-5"), false, false, true),
            (with(numbers(1, 7), "007"), false, false, true),
            (with(numbers(1, 7), "7\0"), false, false, true),
        ];
        for (mut want, are_numbers, are_alike, are_short) in cases {
            for may_be_numbers in [false, true] {
                let (got, orders) = sorted(&want, may_be_numbers);
                let by_number = may_be_numbers && are_numbers && !are_alike && are_short;
                let order = match by_number {
                    true => KeyOrder::numbers(1, b'.'),
                    false => KeyOrder::BYTES,
                };
                let parts = |key: &'_ String| [key.clone().into_bytes()];
                want.sort_by(|one, other| {
                    let (one, other) = (parts(one), parts(other));
                    order.compare(
                        one.iter().map(|part| &**part),
                        other.iter().map(|part| &**part),
                    )
                });
                assert_eq!(got, want);
                assert_eq!(orders.bytes, !by_number);
                assert_eq!(orders.numbers, by_number || are_numbers && are_alike);
            }
        }
    }
}
