//! The rows of the inputs' blocks that make some groups.

use crate::partial::merge::order::{Ranked, Row};

/// The rows that make some groups, in the order of their keys.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The first of each group.
    pub(crate) firsts: Vec<Row>,
    /// The others, each with the number of its group; in the order of the groups.
    pub(crate) others: Vec<(u32, Row)>,
}

impl Batch {
    /// Makes groups of rows that are in order: `are_same` says whether a row and the one before have the same key.
    #[inline(always)]
    pub(crate) fn group(&mut self, rows: &[Ranked], are_same: impl Fn(&Ranked, &Ranked) -> bool) {
        let Batch { firsts, others } = self;
        firsts.resize(rows.len(), Row::default());
        others.resize(rows.len(), (0, Row::default()));
        // Each row is written as both, and only one of these stays: no branch depends on the data.
        let (mut groups, mut rest) = (0, 0);
        let mut before = None;
        for ranked in rows {
            let is_other = before.is_some_and(|before| are_same(before, ranked));
            firsts[groups] = ranked.row;
            groups += usize::from(!is_other);
            others[rest] = (groups as u32 - 1, ranked.row);
            rest += usize::from(is_other);
            before = Some(ranked);
        }
        firsts.truncate(groups);
        others.truncate(rest);
    }

    /// Leaves only the groups that `keeps` says, asked for the first row of each.
    pub(crate) fn retain(&mut self, keeps: impl Fn(Row) -> bool) {
        let mut count = 0;
        let numbers = self.firsts.iter().map(|&first| {
            let number = keeps(first).then_some(count);
            count += u32::from(number.is_some());
            number
        });
        let numbers: Vec<Option<u32>> = numbers.collect();
        self.others.retain_mut(|(group, _)| {
            let number = numbers[*group as usize];
            *group = number.unwrap_or_default();
            number.is_some()
        });
        let mut numbers = numbers.iter();
        self.firsts
            .retain(|_| numbers.next().is_some_and(Option::is_some));
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
