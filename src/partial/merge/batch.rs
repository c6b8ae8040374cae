//! The rows of the inputs' blocks that make some groups.

/// A row of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) input: u32,
    pub(crate) row: u32,
}

/// The rows that make some groups, in the order of their keys.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The first of each group.
    pub(crate) firsts: Vec<Row>,
    /// The others, each with the number of its group; in the order of the groups.
    pub(crate) others: Vec<(u32, Row)>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.firsts.clear();
        self.others.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.firsts.len()
    }

    /// The rows of each group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = impl Iterator<Item = Row> + Clone> {
        let mut others = &self.others[..];
        (0..).zip(&self.firsts).map(move |(group, &first)| {
            let own = others.iter().take_while(|(other, _)| *other == group);
            let (own, rest) = others.split_at(own.count());
            others = rest;
            std::iter::once(first).chain(own.iter().map(|(_, row)| *row))
        })
    }
}
