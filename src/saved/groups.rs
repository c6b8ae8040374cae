//! The groups of a partial, one after the other, looked at where they lie.

use std::borrow::Cow;
use std::fmt;

use ringfold_read::Result;

use crate::partial::block::Block;
use crate::partial::column::{ColumnView, Decimal as Stored};
use crate::partial::description::{RANK_BYTES, Rule};
use crate::partial::key;
use crate::partial::reader::{Cursor, Loaded, Reader};

/// The groups of a partial in the order of their keys. A block of them is in memory at a time, and nothing of it is copied.
///
/// ```
/// # use ringfold::query::{Query, Value};
/// # use ringfold::{Config, Input};
/// # let query = Query::new(b',').key(1).aggregate("sum", Some(2.into()))?;
/// # let input = Input::memory([&b"Berlin,1\nOslo,2\nBerlin,0.5\n"[..]]);
/// # let (partial, ..) = query.partial(&input, &Config::default())?;
/// let mut groups = partial.groups();
/// let mut longest = Vec::new();
/// while let Some(block) = groups.next_block()? {
///     // The keys lie in the block: only the one that is kept is copied.
///     if let Some(group) = block.iter().max_by_key(|group| group.key().len()) {
///         longest = group.key().to_vec();
///         assert_eq!(group.value(0).to_string(), "1.5");
///     }
/// }
/// assert_eq!(longest, b"Berlin");
/// # Ok::<(), ringfold::Error>(())
/// ```
#[derive(Debug)]
pub struct SavedGroups<'a> {
    cursor: Cursor<'a>,
    /// How many parts keys have.
    parts: usize,
    /// The block that was given out.
    loaded: Option<Loaded<'a>>,
}

impl<'a> SavedGroups<'a> {
    pub(super) fn new(reader: &'a Reader) -> SavedGroups<'a> {
        SavedGroups {
            cursor: Cursor::new(reader),
            parts: reader.description.key_parts(),
            loaded: None,
        }
    }

    /// The next groups; `None` after the last. All of the block is checked, and the order of its keys.
    ///
    /// # Errors
    /// It can't be read, or is damaged.
    pub fn next_block(&mut self) -> Result<Option<SavedBlock<'_>>> {
        let before = self.loaded.take();
        let buffer = before.map_or_else(Vec::new, Loaded::into_buffer);
        self.loaded = self.cursor.next_block(buffer)?;
        let Some(loaded) = &self.loaded else {
            return Ok(None);
        };
        let (block, parts) = (loaded.view(), self.parts);
        let are_right = parts == 1
            || (0..block.len()).all(|row| key::parts(block.keys.get(row), parts).is_some());
        match are_right {
            true => Ok(Some(SavedBlock { block, parts })),
            false => Err(loaded.damaged("a key has other parts")),
        }
    }

    /// Calls `each` with each group that is left.
    ///
    /// # Errors
    /// A block can't be read, or is damaged; or that of `each`.
    pub fn for_each(&mut self, mut each: impl FnMut(SavedGroup<'_>) -> Result<()>) -> Result<()> {
        while let Some(block) = self.next_block()? {
            block.iter().try_for_each(&mut each)?;
        }
        Ok(())
    }
}

/// Some groups of a partial.
#[derive(Debug)]
pub struct SavedBlock<'a> {
    block: Block<'a>,
    /// How many parts keys have.
    parts: usize,
}

impl SavedBlock<'_> {
    /// The groups in the order of their keys.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SavedGroup<'_>> {
        (0..self.block.len()).map(|row| SavedGroup {
            block: &self.block,
            parts: self.parts,
            row,
        })
    }
}

/// A group of a partial.
#[derive(Debug, Clone, Copy)]
pub struct SavedGroup<'a> {
    block: &'a Block<'a>,
    parts: usize,
    row: usize,
}

impl<'a> SavedGroup<'a> {
    /// Its key, as it lies in the file: of one column the field itself; of several, each but the last has `00 ff` for each
    /// zero byte and ends with `00 00`. Keys are in the order of these bytes.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.block.keys.get(self.row)
    }

    /// The parts of its key. Only those with zero bytes are copied. Of an exact query there is one part more, which is empty
    /// in groups and has the value in those of values: docs/partial-format.md.
    pub fn parts(&self) -> Vec<Cow<'a, [u8]>> {
        key::parts(self.key(), self.parts).expect("keys were checked")
    }

    /// How many columns it has. An aggregate has one or several: docs/partial-format.md.
    pub fn columns(&self) -> usize {
        self.block.columns.len()
    }

    /// What is kept in a column, from 0.
    ///
    /// # Panics
    /// There is no such column.
    #[inline]
    pub fn value(&self, column: usize) -> Value<'a> {
        value(&self.block.columns[column], self.row)
    }
}

/// What a partial keeps of a group in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// How many.
    Count(u64),
    /// A decimal.
    Decimal(Decimal<'a>),
    /// Bytes.
    Text(&'a [u8]),
    /// A sketch, encoded.
    Sketch(&'a [u8]),
}

/// Counts and decimals as digits, texts as they are, nothing for the rest.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => count.fmt(f),
            Value::Decimal(decimal) => decimal.fmt(f),
            Value::Text(text) => String::from_utf8_lossy(text).fmt(f),
            Value::Null | Value::Sketch(_) => Ok(()),
        }
    }
}

/// A decimal of any size, or an infinity or nan. Its text has all of its digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal<'a>(Stored<'a>);

impl Decimal<'_> {
    /// The number as a mantissa and how many of its digits are after the point, if the block has mantissas of 64 bits.
    #[inline]
    pub fn mantissa(&self) -> Option<(i64, u32)> {
        self.0.mantissa()
    }

    /// The nearest double.
    pub fn as_f64(&self) -> f64 {
        self.0.exact().nearest()
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.exact().text())
    }
}

#[inline]
fn value<'a>(column: &ColumnView<'a>, row: usize) -> Value<'a> {
    match column.column.rule {
        Rule::Count | Rule::Values => Value::Count(column.count(row)),
        rule if rule.is_placed() => {
            let placed = column.placed(row);
            placed.map_or(Value::Null, |(_, text)| Value::Text(text))
        }
        Rule::Sketch(_) => Value::Sketch(column.text(row)),
        rule if rule.is_time() => match column.text(row).get(RANK_BYTES..) {
            None => Value::Null,
            Some(text) => Value::Text(text),
        },
        rule if rule.is_text() => match column.text(row) {
            b"" => Value::Null,
            text => Value::Text(text),
        },
        _ => match column.decimal(row) {
            Some(decimal) => Value::Decimal(Decimal(decimal)),
            None => Value::Null,
        },
    }
}
