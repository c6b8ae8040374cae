//! Blocks: some groups in the order of their keys, written from what was gathered, and read where they lie.

use std::ops::Range;

use zerocopy::{FromBytes, IntoBytes};

use crate::partial::column::{
    ColumnView, Gathered, Ragged, Values, Variable, fault, push_variable,
};
use crate::partial::description::{Column, Description, Rule};
use crate::partial::layout::{
    ALIGNMENT, BLOCK_HEAD_BYTES, BlockHead, CHECKSUM_BYTES, End, FIXED, Fixed, SECTION_HEAD_BYTES,
    SectionHead, VARIABLE, checksum, padded,
};

/// A block ends with the group that makes it as large as this or larger. So it fits the second-level cache, also beside
/// others that are merged.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;

/// Groups that are gathered, in the order of their keys.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) keys: Ragged,
    pub(crate) columns: Vec<Gathered>,
}

impl Groups {
    pub(crate) fn new(description: &Description) -> Groups {
        Groups {
            keys: Ragged::default(),
            columns: description.columns().map(Gathered::new).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of all, about.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self
            .columns
            .iter()
            .map(|column| size_of_val(&column.fixed[..]) + column.texts.bytes.len());
        self.keys.bytes.len() + columns.sum::<usize>()
    }

    /// Adds groups of the same columns, whose keys are greater.
    pub(crate) fn append(&mut self, more: Groups) {
        if self.len() == 0 {
            *self = more;
            return;
        }
        self.keys.append(&more.keys);
        for (column, more) in self.columns.iter_mut().zip(more.columns) {
            column.append(more);
        }
    }

    /// Whether there is nothing but keys, counts, and decimals with mantissas of 64 bits.
    pub(crate) fn are_numbers(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.all(|column| {
            let rule = column.column.rule;
            (rule.is_decimal() || rule == Rule::Count) && column.wide.is_empty()
        })
    }

    pub(crate) fn remove_first(&mut self, count: usize) {
        self.keys.remove_first(count);
        let columns = self.columns.iter_mut();
        columns.for_each(|column| column.remove_first(count));
    }

    /// Where the block ends that begins with the group at `from`; `None` where it isn't full. It depends on nothing but the
    /// groups in it.
    pub(crate) fn block_end(&self, from: usize) -> Option<usize> {
        let is_text = |column: &&Gathered| column.column.rule.is_text();
        let texts: Vec<&Ragged> = (self.columns.iter().filter(is_text))
            .map(|column| &column.texts)
            .collect();
        let fixed = self.columns.len() - texts.len();
        let each = fixed * size_of::<Fixed>() + (1 + texts.len()) * size_of::<End>();
        let start = |values: &Ragged| values.start(from);
        let before: usize = start(&self.keys) + texts.iter().map(|text| start(text)).sum::<usize>();
        let is_full = |to: usize| {
            let ends =
                self.keys.ends[to - 1] + texts.iter().map(|text| text.ends[to - 1]).sum::<usize>();
            each * (to - from) + ends - before >= BLOCK_BYTES
        };
        // The first place where it is full: with each group it only grows.
        let (mut low, mut high) = (from + 1, self.len() + 1);
        while low < high {
            let middle = low.midpoint(high);
            match is_full(middle) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        (low <= self.len()).then_some(low)
    }

    /// Writes a block of some groups.
    ///
    /// # Errors
    /// They take 4 GiB or more in one column.
    pub(crate) fn write(&self, groups: Range<usize>, to: &mut Vec<u8>) -> Result<(), &'static str> {
        to.clear();
        let sections = 1 + self.columns.len();
        to.resize(BLOCK_HEAD_BYTES + sections * SECTION_HEAD_BYTES, 0);
        let mut heads = Vec::with_capacity(sections);
        heads.push(write_ragged(&self.keys, groups.clone(), to)?);
        for column in &self.columns {
            heads.push(write_column(column, groups.clone(), to)?);
        }
        to[BLOCK_HEAD_BYTES..][..sections * SECTION_HEAD_BYTES].copy_from_slice(heads.as_bytes());
        let mut head = BlockHead {
            checksum: 0.into(),
            bytes: (to.len() as u64).into(),
            groups: (groups.len() as u32).into(),
            sections: (sections as u32).into(),
        };
        to[..BLOCK_HEAD_BYTES].copy_from_slice(head.as_bytes());
        head.checksum = checksum(&to[CHECKSUM_BYTES..]).into();
        to[..BLOCK_HEAD_BYTES].copy_from_slice(head.as_bytes());
        Ok(())
    }
}

fn write_column(
    column: &Gathered,
    groups: Range<usize>,
    to: &mut Vec<u8>,
) -> Result<SectionHead, &'static str> {
    if column.column.rule.is_text() {
        return write_ragged(&column.texts, groups, to);
    }
    let fixed = &column.fixed[groups.clone()];
    let first = column.wide.partition_point(|(row, _)| *row < groups.start);
    let mut wide = column.wide[first..].iter().peekable();
    if wide.peek().is_none_or(|(row, _)| *row >= groups.end) {
        to.extend_from_slice(fixed.as_bytes());
        return Ok(SectionHead {
            encoding: FIXED.into(),
            reserved: 0.into(),
            bytes: (size_of_val(fixed) as u64).into(),
        });
    }
    let mut values = Ragged::default();
    for (row, mantissa) in groups.zip(fixed) {
        match wide.next_if(|(wide, _)| *wide == row) {
            Some((_, bytes)) => values.push(bytes),
            None => push_variable(mantissa.get(), &mut values),
        }
    }
    write_ragged(&values, 0..values.len(), to)
}

fn write_ragged(
    values: &Ragged,
    groups: Range<usize>,
    to: &mut Vec<u8>,
) -> Result<SectionHead, &'static str> {
    let start = values.start(groups.start);
    let end = values.start(groups.end);
    if u32::try_from(end - start).is_err() {
        return Err("a group of 4 GiB or more can't be kept");
    }
    let at = to.len();
    let ends_bytes = groups.len() * size_of::<End>();
    to.reserve(padded(ends_bytes) + padded(end - start));
    to.resize(at + padded(ends_bytes), 0);
    let ends = <[End]>::mut_from_bytes(&mut to[at..at + ends_bytes]).expect("it has no alignment");
    for (to, end) in ends.iter_mut().zip(&values.ends[groups]) {
        *to = End::new((end - start) as u32);
    }
    to.extend_from_slice(&values.bytes[start..end]);
    to.resize(padded(to.len()), 0);
    Ok(SectionHead {
        encoding: VARIABLE.into(),
        reserved: 0.into(),
        bytes: ((end - start) as u64).into(),
    })
}

/// Where the parts of a block lie, all of which were proven to lie within it.
#[derive(Debug)]
pub(crate) struct Sections {
    groups: usize,
    keys: Section,
    columns: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    /// Nothing where values are of 64 bits.
    ends: Option<Range<usize>>,
    values: Range<usize>,
}

/// A block in memory.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) keys: Variable<'a>,
    pub(crate) columns: Vec<ColumnView<'a>>,
}

impl Block<'_> {
    pub(crate) fn len(&self) -> usize {
        self.keys.ends.len()
    }
}

impl Sections {
    /// Looks at all bytes of a block.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(
        bytes: &[u8],
        description: &Description,
        columns: &[Column],
    ) -> Result<Sections, &'static str> {
        let (head, rest) = BlockHead::read_from_prefix(bytes).map_err(|_| SHORT)?;
        if head.bytes.get() != bytes.len() as u64 {
            return Err("its length isn't that of the index");
        }
        if head.checksum.get() != checksum(&bytes[CHECKSUM_BYTES..]) {
            return Err("its checksum is wrong");
        }
        let sections = head.sections.get() as usize;
        let groups = head.groups.get() as usize;
        if sections != 1 + columns.len() {
            return Err("it has other columns than the description");
        }
        if groups == 0 {
            return Err("it has no groups");
        }
        let heads = <[SectionHead]>::ref_from_prefix_with_elems(rest, sections);
        let (heads, values) = heads.map_err(|_| SHORT)?;
        let mut values = Cut {
            bytes,
            at: bytes.len() - values.len(),
        };
        let mut heads = heads.iter().map(|head| values.section(head, groups));
        let keys = heads.next().ok_or(SHORT)??;
        if keys.ends.is_none() {
            return Err("keys are of 64 bits");
        }
        let found = Sections {
            groups,
            keys,
            columns: heads.collect::<Result<_, _>>()?,
        };
        if values.at != bytes.len() {
            return Err("there are bytes behind its columns");
        }
        let views = found.view(bytes, columns).columns;
        let (rows, sources) = (description.counts.rows, description.sources.len());
        match views.iter().find_map(|view| fault(view, rows, sources)) {
            Some(fault) => Err(fault),
            None => Ok(found),
        }
    }

    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// The block; `bytes` are those that were checked, here and below.
    pub(crate) fn view<'a>(&self, bytes: &'a [u8], columns: &[Column]) -> Block<'a> {
        let columns = columns.iter().enumerate();
        let columns = columns.map(|(at, &column)| self.column(at, column, bytes));
        Block {
            keys: self.keys(bytes),
            columns: columns.collect(),
        }
    }

    pub(crate) fn keys<'a>(&self, bytes: &'a [u8]) -> Variable<'a> {
        match self.keys.values(bytes) {
            Values::Variable(keys) => keys,
            Values::Fixed(_) => unreachable!("{CHECKED}"),
        }
    }

    pub(crate) fn column<'a>(&self, at: usize, column: Column, bytes: &'a [u8]) -> ColumnView<'a> {
        ColumnView {
            column,
            values: self.columns[at].values(bytes),
        }
    }
}

const CHECKED: &str = "it was checked";

impl Section {
    fn values<'a>(&self, bytes: &'a [u8]) -> Values<'a> {
        let values = &bytes[self.values.clone()];
        match &self.ends {
            None => Values::Fixed(<[Fixed]>::ref_from_bytes(values).expect(CHECKED)),
            Some(ends) => Values::Variable(Variable {
                ends: <[End]>::ref_from_bytes(&bytes[ends.clone()]).expect(CHECKED),
                bytes: values,
            }),
        }
    }
}

const SHORT: &str = "it is cut short";

/// The sections of a block that are left.
struct Cut<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cut<'_> {
    fn take(&mut self, bytes: usize) -> Result<Range<usize>, &'static str> {
        let all = bytes.checked_next_multiple_of(ALIGNMENT);
        let end = all.and_then(|all| self.at.checked_add(all));
        let end = end.filter(|end| *end <= self.bytes.len());
        let taken = self.at..self.at + bytes;
        self.at = end.ok_or("a column goes past its end")?;
        Ok(taken)
    }

    fn section(&mut self, head: &SectionHead, groups: usize) -> Result<Section, &'static str> {
        const WRONG: &str = "a column has another length than it says";
        let bytes = usize::try_from(head.bytes.get()).map_err(|_| WRONG)?;
        match head.encoding.get() {
            FIXED if groups.checked_mul(size_of::<Fixed>()) != Some(bytes) => Err(WRONG),
            FIXED => Ok(Section {
                ends: None,
                values: self.take(bytes)?,
            }),
            VARIABLE => {
                let taken = self.take(groups.checked_mul(size_of::<End>()).ok_or(WRONG)?)?;
                let ends = <[End]>::ref_from_bytes(&self.bytes[taken.clone()]);
                let ends = ends.map_err(|_| WRONG)?;
                let are_in_order = (ends.iter().zip(&ends[1..]))
                    .fold(true, |right, (one, two)| right & (one.get() <= two.get()));
                let last = ends.last().map_or(0, |end| end.get() as usize);
                match are_in_order && last == bytes {
                    true => Ok(Section {
                        ends: Some(taken),
                        values: self.take(bytes)?,
                    }),
                    false => Err("a column's values aren't within it"),
                }
            }
            _ => Err("a column's encoding is unknown"),
        }
    }
}
