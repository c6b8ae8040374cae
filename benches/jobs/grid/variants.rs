//! Orders with something changed in each of them: one departure from the plainest file each.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::data::Random;
use crate::files::{self, Kind};

/// Changes the fields of an order that has this number.
type Edit = fn(&mut [String], u64, &mut Random);

/// A file of orders, changed.
pub struct Variant {
    name: &'static str,
    pub delimiter: char,
    end: &'static str,
    /// Written before every hundredth record.
    before: &'static str,
    edit: Edit,
    /// What `read_csv` of DuckDB and `scan_csv` of Polars are told beside the columns.
    pub duckdb: &'static str,
    pub polars: &'static str,
}

const COUNTRY: usize = 2;
const QUANTITY: usize = 5;
const PRICE: usize = 6;
const NOTE: usize = 9;

const PLAIN: Variant = Variant {
    name: "",
    delimiter: ',',
    end: "\n",
    before: "",
    edit: |_, _, _| {},
    duckdb: "",
    polars: "",
};

const fn edited(name: &'static str, edit: Edit) -> Variant {
    Variant {
        name,
        edit,
        ..PLAIN
    }
}

impl Variant {
    pub const SIX_DECIMALS: Variant = edited("six.csv", |order, _, random| {
        order[PRICE] += &format!("{:04}", random.below(10_000));
    });
    pub const FIFTEEN_DECIMALS: Variant = edited("fifteen.csv", |order, _, random| {
        order[PRICE] = format!("0.{:015}", random.below(10_u64.pow(15)));
    });
    pub const NANOSECONDS: Variant = edited("nanoseconds.csv", |order, _, random| {
        order[QUANTITY] = format!("1704067200{:09}", random.below(10_u64.pow(9)));
    });
    pub const MIXED_DECIMALS: Variant = edited("mixed.csv", |order, _, random| {
        let digits = random.below(5) as usize;
        order[PRICE] = format!("{:.digits$}", random.below(10_000_000) as f64 / 10_000.0);
    });
    pub const SIGNS: Variant = edited("signs.csv", |order, _, random| {
        order[PRICE].insert_str(0, ["-", "+", ""][random.below(3) as usize]);
    });
    pub const EXPONENTS: Variant = edited("exponents.csv", |order, _, random| {
        if random.below(10) == 0 {
            order[PRICE] += "e1";
        }
    });
    pub const BLANKS: Variant = edited("blanks.csv", |order, _, random| {
        let blanks = random.below(3) as usize;
        order[PRICE] = format!("{:blanks$}{} ", "", order[PRICE]);
        order[QUANTITY].insert(0, ' ');
    });
    pub const DECIMAL_COMMA: Variant = Variant {
        delimiter: ';',
        duckdb: ", decimal_separator = ','",
        polars: ", decimal_comma=True",
        ..edited("comma.csv", |order, _, _| {
            order[PRICE] = order[PRICE].replace('.', ",");
            order[7] = order[7].replace('.', ",");
        })
    };
    pub const COMMENTS: Variant = Variant {
        before: "# the line was lost, and came again",
        duckdb: ", comment = '#'",
        polars: ", comment_prefix='#'",
        ..edited("comments.csv", |_, _, _| {})
    };
    pub const CRLF: Variant = Variant {
        end: "\r\n",
        ..edited("crlf.csv", |_, _, _| {})
    };
    pub const NULLS: Variant = edited("nulls.csv", |order, _, random| {
        if random.below(4) == 0 {
            order[PRICE].clear();
        }
    });
    pub const ALL_QUOTED: Variant = edited("all-quoted.csv", |order, _, _| {
        for field in order {
            *field = format!("\"{field}\"");
        }
    });
    pub const DOUBLED_ELSEWHERE: Variant = edited("doubled.csv", |order, _, _| {
        order[NOTE] = format!("\"a \"\"{}\"\" note\"", order[NOTE]);
    });
    pub const DOUBLED_IN_KEY: Variant = edited("doubled-key.csv", |order, _, random| {
        if random.below(10) == 0 {
            order[COUNTRY] = format!("\"the \"\"{}\"\"\"", order[COUNTRY]);
        }
    });
    pub const NOT_A_NUMBER: Variant = edited("not-a-number.csv", |order, _, random| {
        if random.below(100) == 0 {
            order[PRICE] = "unknown".into();
        }
    });
    pub const NA: Variant = Variant {
        duckdb: ", nullstr = ['', 'N/A']",
        polars: ", null_values=['', 'N/A']",
        ..edited("na.csv", |order, _, random| {
            if random.below(4) == 0 {
                order[PRICE] = "N/A".into();
            }
        })
    };
    pub const LONG_KEYS: Variant = edited("long-keys.csv", |order, _, _| {
        order[COUNTRY] = format!(
            "{} is one of the two hundred countries of the list",
            order[COUNTRY]
        );
    });
    pub const LONGER_KEYS: Variant = edited("longer-keys.csv", |order, _, _| {
        let country = &order[COUNTRY];
        order[COUNTRY] = format!(
            "{country} {}",
            "one of the countries of the list ".repeat(6)
        );
    });

    /// The file of as many orders as the file of so many bytes, made where it is missing.
    pub fn file(&self, bytes: u64, folder: &Path) -> io::Result<PathBuf> {
        let path = folder.join(format!("{}MiB-{}", bytes >> 20, self.name));
        if path.exists() {
            return Ok(path);
        }
        let orders = BufReader::with_capacity(
            1 << 20,
            File::open(files::file(Kind::Orders, bytes, folder)?)?,
        );
        let part = path.with_extension("part");
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
        let delimiter = self.delimiter.to_string();
        let mut random = Random(11);
        for (number, order) in (0..).zip(orders.lines()) {
            let order = order?;
            let mut fields: Vec<String> = order.split(',').map(String::from).collect();
            // The first line has the names.
            if number > 0 {
                (self.edit)(&mut fields, number, &mut random);
                if number % 100 == 0 && !self.before.is_empty() {
                    write!(out, "{}{}", self.before, self.end)?;
                }
            }
            write!(out, "{}{}", fields.join(&delimiter), self.end)?;
        }
        out.into_inner()?.sync_all()?;
        fs::rename(part, &path)?;
        Ok(path)
    }
}
