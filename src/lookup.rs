//! A table beside the input, in memory: the row of a key, by the bytes of its fields.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use ahash::RandomState;
use hashbrown::HashTable;
use twox_hash::XxHash3_64;

use crate::decimal::number::shown;
use crate::plan::columns::{Columns, unknown};

/// The most fields of a table: 1 GiB says where they are.
const FIELDS_MAX: usize = 1 << 28;

/// A table, whose rows have a key.
pub(crate) struct LookupTable {
    /// What its columns are called by, before a dot.
    pub(crate) name: String,
    pub(crate) file: Arc<str>,
    pub(crate) titles: Vec<Vec<u8>>,
    /// The columns of the key.
    pub(crate) keys: Vec<usize>,
    /// The fields, one after the other, and where each ends.
    text: Vec<u8>,
    ends: Vec<u32>,
    /// Where rows stand in the file.
    lines: Vec<u64>,
    /// The rows by their keys.
    rows: HashTable<u32>,
    hasher: RandomState,
    /// Of all that decides what is found.
    pub(crate) fingerprint: u64,
}

/// The contents are known by their fingerprint.
impl fmt::Debug for LookupTable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {:016x}", self.name, self.fingerprint)
    }
}

impl LookupTable {
    /// An empty table of columns that are called so.
    ///
    /// # Errors
    /// Several are called alike.
    pub(crate) fn new(
        name: &str,
        file: &Arc<str>,
        titles: &[Vec<u8>],
    ) -> Result<LookupTable, String> {
        for (at, title) in titles.iter().enumerate() {
            let same = titles[..at].iter().position(|other| other == title);
            if let Some(same) = same.filter(|_| !title.is_empty()) {
                let (one, two, title) = (same + 1, at + 1, shown(title));
                return Err(format!(
                    "columns {one} and {two} are both called `{title}`: give one of them another name"
                ));
            }
        }
        Ok(LookupTable {
            name: name.into(),
            file: Arc::clone(file),
            titles: titles.to_vec(),
            keys: Vec::new(),
            text: Vec::new(),
            ends: Vec::new(),
            lines: Vec::new(),
            rows: HashTable::new(),
            hasher: RandomState::new(),
            fingerprint: 0,
        })
    }

    /// Says which columns are its key.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn set_key(&mut self, key: &[Columns]) -> Result<(), String> {
        let titles = &self.titles;
        let find = |columns: &Columns| match columns {
            Columns::Name(name) if !titles.contains(name) => Err(unknown("it", name, titles)),
            columns => match &*columns.find(titles.len(), Some(titles))? {
                [one] => Ok(*one),
                _ => Err("a column of the key is one column".to_string()),
            },
        };
        self.keys = key.iter().map(find).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Adds a field of the row that is being added.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn push(&mut self, field: &[u8]) -> Result<(), String> {
        self.text.extend_from_slice(field);
        match u32::try_from(self.text.len()) {
            Ok(end) if self.ends.len() < FIELDS_MAX => self.ends.push(end),
            _ => {
                return Err(format!(
                    "it has more than {FIELDS_MAX} fields, or more than 4 GiB of text"
                ));
            }
        }
        Ok(())
    }

    /// Ends the row, which stands in this line.
    ///
    /// # Errors
    /// Another row has its key.
    pub(crate) fn end_row(&mut self, line: u64) -> Result<(), String> {
        let row = self.lines.len();
        self.lines.push(line);
        let key = self.key(row);
        // What is null equals nothing.
        if key.iter().any(|part| part.is_empty()) {
            return Ok(());
        }
        if let Some(known) = self.find(&key) {
            let key: Vec<_> = key.iter().map(|part| shown(part)).collect();
            let (key, first) = (key.join(","), self.lines[known]);
            return Err(format!(
                "lines {first} and {line} have the same key, `{key}`: a record would match both"
            ));
        }
        let hash = self.hash(&key);
        drop(key);
        let LookupTable { rows, .. } = self;
        let mut rows = std::mem::take(rows);
        let hash_of = |row: &u32| self.hash(&self.key(*row as usize));
        rows.insert_unique(hash, row as u32, hash_of);
        self.rows = rows;
        Ok(())
    }

    /// Ends the table.
    pub(crate) fn finish(mut self) -> LookupTable {
        let mut hasher = XxHash3_64::new();
        let lists = [&self.titles[..], &[Vec::new()]].concat();
        for title in &lists {
            hasher.write(&(title.len() as u64).to_le_bytes());
            hasher.write(title);
        }
        hasher.write(&self.text);
        for end in &self.ends {
            hasher.write(&end.to_le_bytes());
        }
        self.fingerprint = hasher.finish();
        self
    }

    pub(crate) fn row_count(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn field(&self, row: usize, column: usize) -> &[u8] {
        let at = row * self.titles.len() + column;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[at] as usize]
    }

    /// The line of its file that a row stands in.
    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    fn key(&self, row: usize) -> Vec<&[u8]> {
        let fields = self.keys.iter().map(|&key| self.field(row, key));
        fields.collect()
    }

    fn hash(&self, key: &[impl AsRef<[u8]>]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        key.iter().for_each(|part| part.as_ref().hash(&mut hasher));
        hasher.finish()
    }

    /// The row of a key.
    pub(crate) fn find(&self, key: &[impl AsRef<[u8]>]) -> Option<usize> {
        let is_it = |row: &u32| {
            let mut parts = self.keys.iter().zip(key);
            parts.all(|(&column, part)| self.field(*row as usize, column) == part.as_ref())
        };
        let row = self.rows.find(self.hash(key), is_it)?;
        Some(*row as usize)
    }

    /// The column that a query calls so, with the table's name or without it.
    pub(crate) fn column(&self, name: &[u8]) -> Option<usize> {
        let own = name.strip_prefix(self.name.as_bytes());
        let own = own.and_then(|rest| rest.strip_prefix(b"."));
        let find = |name: &[u8]| {
            let title = self.titles.iter().position(|title| title == name);
            title.filter(|_| !name.is_empty())
        };
        own.and_then(find).or_else(|| find(name))
    }

    /// What a column is called with the table's name.
    pub(crate) fn full_name(&self, column: usize) -> Vec<u8> {
        [self.name.as_bytes(), b".", &self.titles[column]].concat()
    }
}
