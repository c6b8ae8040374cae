//! Several plans of one input, which is read once: each block goes to all of them.

use std::sync::Arc;

use ringfold_read::{Block, BlockError, Error, Fold, Framing, Kind as ErrorKind, Result};

use crate::answer::Answer;
use crate::plan::Plan;
use crate::run::partial::Partial;

/// Plans of queries over the same input. They share the first plan's memory budget.
///
/// ```
/// use ringfold::query::{Plans, Query};
/// use ringfold::{Config, Input, fold};
///
/// let input = Input::memory([&b"city,price\nBern,1.50\nOslo,20\nBern,2.25\n"[..]]);
/// let config = Config::default();
/// let csv = Query::new(b',').header(true);
/// let queries = [csv.clone().key("city"), csv.aggregate("sum", Some("price".into()))?];
/// let plans: Vec<_> = queries.iter().map(|query| query.plan(&input, &config)).collect::<Result<_, _>>()?;
/// let (answers, _) = fold(&input, &config, &Plans::new(plans)?)?;
/// assert_eq!((answers[0].groups, answers[1].groups), (2, 1));
/// # Ok::<(), ringfold::Error>(())
/// ```
#[derive(Debug)]
pub struct Plans(Vec<Plan>);

impl Plans {
    /// # Errors
    /// There is none, or two of them read records in different ways.
    pub fn new(mut plans: Vec<Plan>) -> Result<Plans> {
        let refused = |why: &str| Err(Error::new(ErrorKind::Usage, why));
        let Some((first, others)) = plans.split_first_mut() else {
            return refused("there is no query");
        };
        for other in others.iter_mut() {
            if !first.reads_as(other) {
                return refused(
                    "queries of one run read records in the same way, and two of these don't",
                );
            }
            other.budget = Arc::clone(&first.budget);
        }
        // Blocks in order are cut at lines, and all plans get the same.
        if plans.iter().any(Fold::in_order) {
            plans.iter().for_each(|plan| plan.order.require());
        }
        Ok(Plans(plans))
    }

    /// The plans, in the order of the answers.
    pub fn all(&self) -> &[Plan] {
        &self.0
    }
}

/// The error that comes first in the input, as far as that is known.
fn first_of(one: BlockError, two: BlockError) -> BlockError {
    match (&one, &two) {
        (BlockError::Malformed(a), BlockError::Malformed(b)) if b.start < a.start => two,
        (BlockError::Sink(a), BlockError::Sink(b)) if b.place() < a.place() => two,
        (BlockError::Malformed(_), BlockError::Sink(_)) => two,
        _ => one,
    }
}

impl Fold for Plans {
    type Partial = Vec<Partial>;
    type Output = Vec<Answer>;

    fn partial(&self) -> Vec<Partial> {
        self.partials()()
    }

    fn partials(&self) -> impl Fn() -> Vec<Partial> + Sync {
        let each: Vec<_> = self.0.iter().map(Fold::partials).collect();
        move || each.iter().map(|partial| partial()).collect()
    }

    fn framing(&self) -> &dyn Framing {
        self.0[0].framing()
    }

    fn cut_reach(&self) -> Option<u64> {
        self.0[0].cut_reach()
    }

    fn in_order(&self) -> bool {
        self.0[0].in_order()
    }

    fn block(&self, partials: &mut Vec<Partial>, block: &Block<'_>) -> Result<(), BlockError> {
        let each = self.0.iter().zip(partials);
        let failed = each.filter_map(|(plan, partial)| plan.block(partial, block).err());
        failed.reduce(first_of).map_or(Ok(()), Err)
    }

    fn complete(&self, total: &mut Vec<Partial>) -> Result<()> {
        let mut each = self.0.iter().zip(total);
        each.try_for_each(|(plan, total)| plan.complete(total))
    }

    fn failed(&self, error: Error, partials: Vec<Vec<Partial>>) -> Result<()> {
        let mut own: Vec<_> = self.0.iter().map(|_| Vec::new()).collect();
        for partials in partials {
            let each = own.iter_mut().zip(partials);
            each.for_each(|(own, partial)| own.push(partial));
        }
        let each = || self.0.iter().zip(&own);
        if each().any(|(plan, own)| plan.is_for_order(&error, own)) && self.0[0].order.want() {
            for plan in &self.0 {
                plan.order.require();
                plan.rejecting.restart();
            }
            return Ok(());
        }
        let failures = self.0.iter().zip(own).map(|(plan, own)| {
            // Of the same record, the error of a plan that has left out too many says more.
            let is_plain = plan.rejecting.exceeded().is_none();
            (plan.failure(error.clone(), own), is_plain)
        });
        let first = failures.min_by_key(|(failure, is_plain)| (failure.place(), *is_plain));
        Err(first.map_or(error, |(failure, _)| failure))
    }

    fn merge(&self, into: &mut Vec<Partial>, from: Vec<Partial>) {
        let each = self.0.iter().zip(into).zip(from);
        each.for_each(|((plan, into), from)| plan.merge(into, from));
    }

    fn finish(&self, total: Vec<Partial>) -> Vec<Answer> {
        let each = self.0.iter().zip(total);
        each.map(|(plan, total)| plan.finish(total)).collect()
    }
}
