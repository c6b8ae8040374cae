//! What is done with the groups of a query or of partials: which rows are shown, how, and the memory for them.

use std::path::PathBuf;
use std::sync::Arc;

use ringfold_read::{CancellationToken, Refusal, Result};

use crate::answer::scope::AGGREGATES;
use crate::budget::{Budget, default_directory};
use crate::expression::Expression;
use crate::refusal::{HAVING, PRECISION};

/// The most digits after the point that can be asked for.
const PRECISION_MAX: u32 = 100;

/// How the answer of partials is shown.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    pub(crate) fill: Option<Vec<u8>>,
    pub(crate) having: Vec<Expression>,
    pub(crate) precision: Option<u32>,
    pub(crate) names: Vec<Vec<u8>>,
    memory: Option<u64>,
    spill_directory: Option<PathBuf>,
}

impl Shown {
    /// See [`Query::fill`](crate::query::Query::fill).
    #[must_use]
    pub fn fill(mut self, key: impl Into<Vec<u8>>) -> Shown {
        self.fill = Some(key.into());
        self
    }

    /// See [`Query::having`](crate::query::Query::having).
    ///
    /// # Errors
    /// The condition can't be understood.
    pub fn having(mut self, condition: &str) -> Result<Shown> {
        let having = Expression::condition_of_aggregates(condition, HAVING, &AGGREGATES);
        self.having.push(having?);
        Ok(self)
    }

    /// See [`Query::precision`](crate::query::Query::precision).
    #[must_use]
    pub fn precision(mut self, digits: Option<u32>) -> Shown {
        self.precision = digits;
        self
    }

    /// The bytes that groups may take in memory; beyond, the answer's rows are in a temporary file.
    /// See [`Query::memory`](crate::query::Query::memory).
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Shown {
        self.memory = Some(bytes);
        self
    }

    /// See [`Query::spill_directory`](crate::query::Query::spill_directory).
    #[must_use]
    pub fn spill_directory(mut self, directory: impl Into<PathBuf>) -> Shown {
        self.spill_directory = Some(directory.into());
        self
    }

    /// See [`Query::name`](crate::query::Query::name).
    #[must_use]
    pub fn name(mut self, name: impl Into<Vec<u8>>) -> Shown {
        self.names.push(name.into());
        self
    }

    /// Where groups go that don't fit into the memory.
    pub fn directory(&self) -> PathBuf {
        self.budget(None).directory().to_owned()
    }

    pub(crate) fn budget(&self, cancellation: Option<CancellationToken>) -> Arc<Budget> {
        let directory = self.spill_directory.clone();
        let directory = directory.unwrap_or_else(default_directory);
        Budget::new(self.memory, &directory, cancellation)
    }

    /// # Errors
    /// More digits than can be asked for.
    pub(crate) fn check_precision(&self) -> Result<()> {
        match self.precision.filter(|digits| *digits > PRECISION_MAX) {
            None => Ok(()),
            Some(digits) => Err(Refusal::OutOfRange {
                setting: PRECISION,
                value: digits.into(),
                min: 0,
                max: PRECISION_MAX.into(),
            }
            .into()),
        }
    }
}
