//! What a partial says of itself: the query that made it, its columns, and what was read.

use crate::sketch::Sketch;

/// The most digits after the point in a column: more than twice those of a number with an exponent, for squares.
pub(crate) const SCALE_MAX: u32 = 1000;

/// Bytes before the text of a time, which are ordered as instants are.
pub(crate) const RANK_BYTES: usize = crate::sketch::profile::RANK_BYTES;

/// How two values of a column become one, and by that what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Whole numbers that count rows are added.
    Count,
    /// Decimals are added; one that isn't there adds nothing.
    Sum,
    /// The lesser of two decimals remains.
    Least,
    /// The greater of two decimals remains.
    Greatest,
    /// The lesser of two texts remains, compared as bytes. No text is empty: an empty one isn't there.
    LeastText,
    /// The greater of two texts remains.
    GreatestText,
    /// Of two texts with their places the one at the first place remains.
    FirstText,
    /// The one at the last place remains.
    LastText,
    /// Sketches are merged.
    Sketch(Sketch),
    /// Counts of values are added. Each value has a row of its own after its group.
    Values,
    /// The lesser of two texts remains: [`RANK_BYTES`] that are ordered as instants are, and a time as it was written.
    EarliestTime,
    /// The greater of two such texts remains.
    LatestTime,
}

impl Rule {
    const ALL: [Rule; 15] = [
        Rule::Count,
        Rule::Sum,
        Rule::Least,
        Rule::Greatest,
        Rule::LeastText,
        Rule::GreatestText,
        Rule::FirstText,
        Rule::LastText,
        Rule::Sketch(Sketch::Histogram),
        Rule::Sketch(Sketch::Distinct),
        Rule::Sketch(Sketch::Frequencies),
        Rule::Values,
        Rule::EarliestTime,
        Rule::LatestTime,
        Rule::Sketch(Sketch::Profile),
    ];

    /// Its number in a file.
    fn code(self) -> u32 {
        1 + Rule::ALL
            .iter()
            .position(|rule| *rule == self)
            .expect("all are listed") as u32
    }

    fn of(code: u32) -> Option<Rule> {
        Rule::ALL.get((code as usize).checked_sub(1)?).copied()
    }

    /// Whether the values are decimals.
    pub(crate) fn is_decimal(self) -> bool {
        matches!(self, Rule::Sum | Rule::Least | Rule::Greatest)
    }

    /// Whether the values are bytes.
    pub(crate) fn is_text(self) -> bool {
        let is_plain = matches!(self, Rule::LeastText | Rule::GreatestText | Rule::Sketch(_));
        self.is_placed() || self.is_time() || is_plain
    }

    /// Whether the values are times.
    pub(crate) fn is_time(self) -> bool {
        matches!(self, Rule::EarliestTime | Rule::LatestTime)
    }

    /// Whether the values are sketches of which estimates come.
    pub(crate) fn is_estimate(self) -> bool {
        matches!(self, Rule::Sketch(sketch) if sketch.is_estimate())
    }

    /// Whether the values are bytes after the place that they have in the input.
    pub(crate) fn is_placed(self) -> bool {
        matches!(self, Rule::FirstText | Rule::LastText)
    }
}

/// A column: one value for each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) rule: Rule,
    /// Digits after the point of its decimals. Of [`Rule::Values`], the aggregate whose values they are.
    pub(crate) scale: u32,
}

/// The columns of an aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aggregate {
    /// What it is, such as `sum`.
    pub(crate) name: Vec<u8>,
    /// How its column of the answer is called.
    pub(crate) title: Vec<u8>,
    /// The most digits after the point of the numbers that it has seen.
    pub(crate) scale: u32,
    /// Whether it computes on numbers.
    pub(crate) is_numeric: bool,
    pub(crate) columns: Vec<Column>,
}

/// What became of the records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Records that were added. No count in a column is greater.
    pub(crate) rows: u64,
    pub(crate) filtered: u64,
    pub(crate) empty_lines: u64,
    pub(crate) nulled: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    fn all(&mut self) -> [&mut u64; 5] {
        let Counts {
            rows,
            filtered,
            empty_lines,
            nulled,
            skipped,
        } = self;
        [rows, filtered, empty_lines, nulled, skipped]
    }

    /// Both together; `None` where a number isn't one that a column can hold.
    pub(crate) fn plus(mut self, mut other: Counts) -> Option<Counts> {
        for (to, from) in self.all().into_iter().zip(other.all()) {
            let sum = to.checked_add(*from);
            *to = sum.filter(|sum| i64::try_from(*sum).is_ok())?;
        }
        Some(self)
    }
}

/// A file or stream that was read, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: Vec<u8>,
    /// A stream has no bytes that can be read again.
    pub(crate) is_stream: bool,
    /// The file system's number for it, and that of its device.
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Its length when it was opened; zero for a stream.
    pub(crate) bytes: u64,
    /// When it was last written to.
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
    /// A checksum of its first and last bytes; a random number for a stream.
    pub(crate) fingerprint: u64,
}

/// A part of a source whose records are in the partial: those whose first byte lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: u32,
    pub(crate) from: u64,
    /// One past the last byte; `u64::MAX` for a stream.
    pub(crate) to: u64,
    /// Which of how many parts of its input it belongs to, from 1; 1 of 1 where the input wasn't divided.
    pub(crate) part: u32,
    pub(crate) parts: u32,
    /// Parts of one input have the same number here; 0 where the input wasn't divided.
    pub(crate) division: u64,
    pub(crate) extent: Extent,
}

/// Where the records of a span are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The bytes around its ends tell.
    #[default]
    Plain,
    /// No record was taken to begin in it.
    Empty,
    /// The first one was taken to begin at one byte, and the one after the last at the other. The records of the span before
    /// tell whether that is right.
    Records {
        from: u64,
        to: u64,
        /// The last one ends there wherever the first one begins.
        is_settled: bool,
    },
}

/// All that a partial says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Description {
    /// What was asked, as names and values. Partials are merged if these are the same.
    pub(crate) query: Vec<(Vec<u8>, Vec<u8>)>,
    /// What the key's parts are called.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) aggregates: Vec<Aggregate>,
    pub(crate) counts: Counts,
    pub(crate) sources: Vec<Source>,
    /// In the order of the sources and of their bytes.
    pub(crate) spans: Vec<Span>,
}

impl Description {
    /// The columns of all aggregates.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Column> {
        let aggregates = self.aggregates.iter();
        aggregates.flat_map(|aggregate| aggregate.columns.iter().copied())
    }

    /// How many parts keys have.
    pub(crate) fn key_parts(&self) -> usize {
        let has_values = self.columns().any(|column| column.rule == Rule::Values);
        self.keys.len() + usize::from(has_values)
    }

    /// The version of the format that can say this: the lowest one.
    pub(crate) fn version(&self) -> u32 {
        let is_plain = |span: &Span| span.extent == Extent::Plain;
        1 + u32::from(!self.spans.iter().all(is_plain))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Encoder(Vec::new());
        to.list(&self.query, |to, (name, value)| {
            to.bytes(name);
            to.bytes(value);
        });
        to.list(&self.keys, |to, name| to.bytes(name));
        to.list(&self.aggregates, |to, aggregate| {
            to.bytes(&aggregate.name);
            to.bytes(&aggregate.title);
            to.short(aggregate.scale);
            to.short(aggregate.is_numeric.into());
            to.list(&aggregate.columns, |to, column| {
                to.short(column.rule.code());
                to.short(column.scale);
            });
        });
        let mut counts = self.counts;
        for count in counts.all() {
            to.long(*count);
        }
        to.list(&self.sources, |to, source| {
            to.bytes(&source.name);
            to.short(source.is_stream.into());
            to.long(source.device);
            to.long(source.inode);
            to.long(source.bytes);
            to.long(source.seconds.cast_unsigned());
            to.short(source.nanoseconds);
            to.long(source.fingerprint);
        });
        to.list(&self.spans, |to, span| {
            to.short(span.source);
            to.long(span.from);
            to.long(span.to);
            to.short(span.part);
            to.short(span.parts);
            to.long(span.division);
        });
        if self.version() > 1 {
            let extents = (0..).zip(&self.spans).filter_map(|(at, span)| {
                let (from, to, is_settled) = match span.extent {
                    Extent::Plain => return None,
                    Extent::Empty => (u64::MAX, u64::MAX, false),
                    Extent::Records {
                        from,
                        to,
                        is_settled,
                    } => (from, to, is_settled),
                };
                Some((at, from, to, is_settled))
            });
            let extents: Vec<_> = extents.collect();
            to.list(&extents, |to, &(at, from, end, is_settled)| {
                to.short(at);
                to.long(from);
                to.long(end);
                to.short(is_settled.into());
            });
        }
        to.0
    }

    /// # Errors
    /// What is wrong with it.
    pub(crate) fn decode(bytes: &[u8], version: u32) -> Result<Description, &'static str> {
        let mut from = Decoder(bytes);
        let mut description = Description {
            query: from.list(|from| Ok((from.bytes()?, from.bytes()?)))?,
            keys: from.list(Decoder::bytes)?,
            aggregates: from.list(|from| {
                Ok(Aggregate {
                    name: from.bytes()?,
                    title: from.bytes()?,
                    scale: from.scale()?,
                    is_numeric: from.truth()?,
                    columns: from.list(|from| {
                        let rule = Rule::of(from.short()?).ok_or("a column's rule is unknown")?;
                        let scale = match rule {
                            Rule::Values => from.short()?,
                            _ => from.scale()?,
                        };
                        Ok(Column { rule, scale })
                    })?,
                })
            })?,
            counts: {
                let mut counts = Counts::default();
                for count in counts.all() {
                    *count = from.long()?;
                }
                counts
            },
            sources: from.list(|from| {
                Ok(Source {
                    name: from.bytes()?,
                    is_stream: from.truth()?,
                    device: from.long()?,
                    inode: from.long()?,
                    bytes: from.long()?,
                    seconds: from.long()?.cast_signed(),
                    nanoseconds: from.short()?,
                    fingerprint: from.long()?,
                })
            })?,
            spans: from.list(|from| {
                Ok(Span {
                    source: from.short()?,
                    from: from.long()?,
                    to: from.long()?,
                    part: from.short()?,
                    parts: from.short()?,
                    division: from.long()?,
                    extent: Extent::Plain,
                })
            })?,
        };
        if version > 1 {
            let extents = from.list(|from| {
                let at = from.short()?;
                let extent = match (from.long()?, from.long()?, from.truth()?) {
                    (u64::MAX, u64::MAX, false) => Extent::Empty,
                    (from, to, is_settled) => Extent::Records {
                        from,
                        to,
                        is_settled,
                    },
                };
                Ok((at, extent))
            })?;
            for (at, extent) in extents {
                let span = description.spans.get_mut(at as usize);
                span.ok_or("records are of a span that isn't there")?.extent = extent;
            }
        }
        if !from.0.is_empty() {
            return Err("there are bytes behind it");
        }
        description.check().map(|()| description)
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.counts.plus(Counts::default()).is_none() {
            return Err("a count is too large");
        }
        let mut before = (0, 0);
        for span in &self.spans {
            let Some(source) = self.sources.get(span.source as usize) else {
                return Err("a span is of a source that isn't there");
            };
            let end = if source.is_stream {
                u64::MAX
            } else {
                source.bytes
            };
            if (span.source, span.from) < before || span.from > span.to || span.to > end {
                return Err("its spans aren't in order");
            }
            if span.part == 0 || span.part > span.parts {
                return Err("a span belongs to no part");
            }
            if let Extent::Records { from, to, .. } = span.extent {
                let is_within = (span.from..span.to).contains(&from) && to <= end;
                if !is_within || to < span.to {
                    return Err("a span's records are outside of it");
                }
            }
            before = (span.source, span.to);
        }
        Ok(())
    }
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn short(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn long(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.short(u32::try_from(bytes.len()).expect("a text of less than 4 GiB"));
        self.0.extend_from_slice(bytes);
    }

    fn list<T>(&mut self, list: &[T], each: impl Fn(&mut Encoder, &T)) {
        self.short(u32::try_from(list.len()).expect("a list of less than 4 billion"));
        list.iter().for_each(|item| each(self, item));
    }
}

struct Decoder<'a>(&'a [u8]);

impl Decoder<'_> {
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (chunk, rest) = self.0.split_first_chunk::<N>().ok_or("it is cut short")?;
        self.0 = rest;
        Ok(*chunk)
    }

    fn short(&mut self) -> Result<u32, &'static str> {
        self.chunk().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64, &'static str> {
        self.chunk().map(u64::from_le_bytes)
    }

    fn truth(&mut self) -> Result<bool, &'static str> {
        match self.short()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("what is true or false is neither"),
        }
    }

    fn scale(&mut self) -> Result<u32, &'static str> {
        let scale = self.short()?;
        match scale <= SCALE_MAX {
            true => Ok(scale),
            false => Err("a column has too many digits behind the point"),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, &'static str> {
        let len = self.short()? as usize;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or("it is cut short")?;
        self.0 = rest;
        Ok(bytes.to_vec())
    }

    /// Grows with what is there, so a length that isn't true takes no memory.
    fn list<T>(
        &mut self,
        each: impl Fn(&mut Self) -> Result<T, &'static str>,
    ) -> Result<Vec<T>, &'static str> {
        let count = self.short()?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(each(self)?);
        }
        Ok(list)
    }
}
