//! Columns as they are asked for, by number, range or name, and where they stand.

use ringfold_read::{Error, Kind, Result};

use crate::decimal::number::shown;
use crate::format::near::distance;
use crate::format::time::{TimeZone, Unit};

/// Columns that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// One, from 1; a number that is too large may be a name of the header.
    Number(usize),
    /// From one to another, both included.
    Range(usize, usize),
    /// The one with this name in the header.
    Name(Vec<u8>),
}

/// A column of times as it is written: `date+time@hour[Europe/Berlin]`.
pub(crate) struct WrittenTime {
    pub(crate) columns: Columns,
    pub(crate) clock: Option<Columns>,
    pub(crate) unit: Unit,
    pub(crate) zone: Option<TimeZone>,
}

impl From<usize> for Columns {
    fn from(number: usize) -> Columns {
        Columns::Number(number)
    }
}

impl From<&str> for Columns {
    fn from(name: &str) -> Columns {
        Columns::Name(name.into())
    }
}

impl Columns {
    /// Reads one item: `3`, `2-4`, `price`, or `"3"` for a column that is called 3.
    ///
    /// # Errors
    /// It is empty, or its quotes aren't closed.
    pub fn read(item: &str) -> Result<Columns> {
        if item.starts_with('"') {
            return Ok(Columns::Name(Columns::read_name(item)?));
        }
        if item.is_empty() {
            return Err(usage("a column's name or number is missing"));
        }
        if let Some(number) = number(item) {
            return Ok(Columns::Number(number));
        }
        if let Some((from, to)) = item.split_once('-')
            && let (Some(from), Some(to)) = (number(from), number(to))
        {
            return Ok(Columns::Range(from, to));
        }
        Ok(Columns::Name(item.into()))
    }

    /// Reads a name, between double quotes or without them.
    ///
    /// # Errors
    /// It is empty, or its quotes aren't closed.
    pub fn read_name(item: &str) -> Result<Vec<u8>> {
        let Some(rest) = item.strip_prefix('"') else {
            return match item {
                "" => Err(usage("a column's name is missing")),
                name => Ok(name.into()),
            };
        };
        let name = rest
            .strip_suffix('"')
            .ok_or_else(|| usage(&format!("`{item}` lacks a closing quote")))?;
        Ok(name.replace("\"\"", "\"").into_bytes())
    }

    /// Whether an item begins with a name in double quotes, after which something follows.
    pub(crate) fn is_quoted_part(item: &str) -> bool {
        let rest = item.strip_prefix('"').map(|rest| rest.replace("\"\"", ""));
        rest.and_then(|rest| Some(!rest.split_once('"')?.1.is_empty())) == Some(true)
    }

    /// Splits a list at its commas; those between double quotes are part of a name, and those in parentheses and in texts
    /// between single quotes of a value.
    pub fn items(list: &str) -> Vec<&str> {
        Columns::split(list, true)
            .or_else(|| Columns::split(list, false))
            .unwrap_or_else(|| vec![list])
    }

    /// The same; `None` where there are values, and a parenthesis or a quote of one isn't closed.
    fn split(list: &str, has_values: bool) -> Option<Vec<&str>> {
        let (mut items, mut from, mut depth) = (Vec::new(), 0, 0);
        let (mut quote, mut before) = (None, b',');
        for (at, byte) in list.bytes().enumerate() {
            match (byte, quote) {
                (_, Some(open)) if byte == open => quote = None,
                (_, Some(_)) => {}
                (b'"', None) => quote = Some(byte),
                // Not that of a name such as `driver's`.
                (b'\'', None) if has_values && !before.is_ascii_alphanumeric() => {
                    quote = Some(byte)
                }
                (b'(', None) if has_values => depth += 1,
                (b')', None) if has_values => depth -= 1,
                (b',', None) if depth == 0 => {
                    items.push(&list[from..at]);
                    from = at + 1;
                }
                _ => {}
            }
            before = byte;
        }
        items.push(&list[from..]);
        let is_whole = depth == 0 && quote != Some(b'\'');
        (is_whole || !has_values).then_some(items)
    }

    /// Where they stand, from 0, in records of `width` fields with these names, if they have names.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn find(
        &self,
        width: usize,
        header: Option<&[Vec<u8>]>,
    ) -> Result<Vec<usize>, String> {
        let known = |number: usize| match number {
            0 => Err("columns are counted from 1".to_string()),
            _ if number > width => {
                let fields = plural(width, "field");
                let called =
                    header.map_or(String::new(), |header| format!(", called {}", list(header)));
                Err(format!(
                    "there is no column {number}: the first record has {fields}{called}"
                ))
            }
            _ => Ok(number - 1),
        };
        // A number that no column has may be a name, as that of a year.
        let known = |number: usize| {
            let name = number.to_string().into_bytes();
            let header = header.filter(|_| number > width).unwrap_or_default();
            let mut called = (0..header.len()).filter(|&at| header[at] == name);
            match (called.next(), called.next()) {
                (Some(at), None) => Ok(at),
                _ => known(number),
            }
        };
        match self {
            Columns::Number(number) => Ok(vec![known(*number)?]),
            Columns::Range(from, to) if from > to => {
                Err(format!("the range {from}-{to} is backwards"))
            }
            Columns::Range(from, to) => match (known(*from)?, known(*to)?) {
                (first, last) if first > last => Err(format!("the range {from}-{to} is backwards")),
                (first, last) => Ok((first..=last).collect()),
            },
            Columns::Name(name) => {
                let Some(header) = header else {
                    return Err(format!(
                        "`{}` is a column's name, and names need a header",
                        shown(name)
                    ));
                };
                let mut found = (0..header.len()).filter(|&at| header[at] == *name);
                match (found.next(), found.next()) {
                    (Some(at), None) => Ok(vec![at]),
                    (Some(one), Some(two)) => Err(format!(
                        "columns {} and {} are both called `{}`: say the number",
                        one + 1,
                        two + 1,
                        shown(name)
                    )),
                    _ => Err(match unit_of(name) {
                        Some(unit) => format!(
                            "no column is called `{}`, and `{unit}` is no unit of time; these are {}",
                            shown(name),
                            Unit::NAMES
                        ),
                        None => unknown("the header", name, header),
                    }),
                }
            }
        }
    }

    /// Reads a column of times: `time@hour`, `time@hour[Europe/Berlin]`, or `date+time@hour` for a date and a time of day in
    /// two columns. `None`: it has no unit.
    ///
    /// # Errors
    /// A column is missing, or its quotes aren't closed.
    pub(crate) fn read_time(item: &str) -> Result<Option<WrittenTime>> {
        let Some((columns, unit)) = item.rsplit_once('@') else {
            return Ok(None);
        };
        let Some((unit, zone)) = Unit::zoned(unit).map_err(|why| usage(&why))? else {
            return Ok(None);
        };
        let mut is_quoted = false;
        let plus = columns.find(|letter| {
            is_quoted ^= letter == '"';
            letter == '+' && !is_quoted
        });
        let (columns, clock) = match plus {
            None => (Columns::read(columns)?, None),
            Some(at) => {
                let clock = Columns::read(&columns[at + 1..])?;
                (Columns::read(&columns[..at])?, Some(clock))
            }
        };
        Ok(Some(WrittenTime {
            columns,
            clock,
            unit,
            zone,
        }))
    }

    /// Whether there can be such columns in a record of so many bytes at most: it has a field more than delimiters.
    ///
    /// # Errors
    /// There can't.
    pub(crate) fn check(&self, max_record: usize) -> Result<(), String> {
        let most = max_record.saturating_add(1);
        match *self {
            Columns::Number(0) | Columns::Range(0, _) => Err("columns are counted from 1".into()),
            Columns::Range(from, to) if from > to => {
                Err(format!("the range {from}-{to} is backwards"))
            }
            Columns::Number(last) | Columns::Range(_, last) if last > most => Err(format!(
                "there is no column {last}: a record of at most {max_record} bytes has no more than {most} fields"
            )),
            _ => Ok(()),
        }
    }

    /// Whether they are asked for by name, as those of JSON lines must be.
    ///
    /// # Errors
    /// They are numbers.
    pub(crate) fn check_named(&self) -> Result<(), String> {
        let names: Vec<_> = match self {
            Columns::Name(_) => return Ok(()),
            numbers => numbers.names(),
        };
        let number = shown(&names[0]).into_owned();
        Err(format!(
            "columns of JSON lines have names and no numbers: a key that is called {number} stands in double quotes"
        ))
    }

    /// How the columns are called where there is no record to find them in.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        match self {
            Columns::Number(number) => vec![number.to_string().into_bytes()],
            Columns::Range(from, to) => (*from..=*to).map(|n| n.to_string().into_bytes()).collect(),
            Columns::Name(name) => vec![name.clone()],
        }
    }
}

fn usage(why: &str) -> Error {
    Error::new(Kind::Usage, why)
}

/// What stands after an `@` in a name, as a unit would.
fn unit_of(name: &[u8]) -> Option<&str> {
    let (name, unit) = std::str::from_utf8(name).ok()?.rsplit_once('@')?;
    let is_word = !unit.is_empty() && unit.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_word && !name.is_empty()).then_some(unit)
}

fn number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

/// `1 field`, `2 fields`.
pub(crate) fn plural(count: usize, of: &str) -> String {
    match count {
        1 => format!("1 {of}"),
        _ => format!("{count} {of}s"),
    }
}

/// What is wrong with a name that isn't among the names of `whose` columns.
pub(crate) fn unknown(whose: &str, name: &[u8], header: &[Vec<u8>]) -> String {
    let wanted = name.to_ascii_lowercase();
    let near = header
        .iter()
        .map(|other| (distance(&wanted, &other.to_ascii_lowercase()), other))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= 1 + name.len() / 3);
    let meant = near.map_or(";".to_string(), |(_, near)| {
        format!(", did you mean `{}`?", shown(near))
    });
    let names = list(header);
    format!(
        "no column is called `{}`{meant} {whose} has: {names}",
        shown(name)
    )
}

/// The first of many names.
pub(crate) fn list(header: &[Vec<u8>]) -> String {
    const MOST: usize = 20;
    let mut names: Vec<_> = header.iter().take(MOST).map(|name| shown(name)).collect();
    if header.len() > MOST {
        names.push(format!("and {} more", header.len() - MOST).into());
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read() {
        let read = |list| {
            Columns::items(list)
                .into_iter()
                .map(Columns::read)
                .collect::<Result<Vec<_>, _>>()
        };
        let want = vec![
            Columns::Number(3),
            Columns::Range(2, 4),
            "city".into(),
            "a,\"b".into(),
            "7".into(),
            "x-ray".into(),
        ];
        assert_eq!(read("3,2-4,city,\"a,\"\"b\",\"7\",x-ray").unwrap(), want);
        let error = |list| read(list).unwrap_err().to_string();
        assert!(error("a,,b").contains("missing"));
        assert!(error("\"a").contains("closing quote"));
    }

    #[test]
    fn columns_are_found() {
        let header = ["city", "price", "qty", "qty"].map(|name| name.as_bytes().to_vec());
        let find = |columns: Columns| columns.find(4, Some(&header));
        assert_eq!(find("price".into()), Ok(vec![1]));
        assert_eq!(find(Columns::Range(2, 4)), Ok(vec![1, 2, 3]));
        for (columns, want) in [
            (
                Columns::from("prise"),
                "no column is called `prise`, did you mean `price`? the header has: city, price, qty, qty",
            ),
            (
                "elephant".into(),
                "no column is called `elephant`; the header has: city, price, qty, qty",
            ),
            (
                "qty".into(),
                "columns 3 and 4 are both called `qty`: say the number",
            ),
            (0.into(), "columns are counted from 1"),
            (
                5.into(),
                "there is no column 5: the first record has 4 fields, called city, price, qty, qty",
            ),
            (Columns::Range(3, 2), "the range 3-2 is backwards"),
        ] {
            assert_eq!(find(columns).unwrap_err(), want);
        }
        let years = ["7", "2017", "2018", "2019"].map(|name| name.as_bytes().to_vec());
        let find = |columns: Columns| columns.find(4, Some(&years));
        assert_eq!(find(2018.into()), Ok(vec![2]));
        assert_eq!(find(Columns::Range(2017, 2019)), Ok(vec![1, 2, 3]));
        assert_eq!(find(7.into()), Ok(vec![0]));
        assert!(find(2020.into()).unwrap_err().contains("no column 2020"));
        let error = Columns::from("a").find(1, None).unwrap_err();
        assert_eq!(error, "`a` is a column's name, and names need a header");
    }
}
