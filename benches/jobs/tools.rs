//! What is asked, and how each tool is asked for it.

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::files::Kind;
use crate::program::{RINGFOLD, output_of};

/// What is computed of a group, and of which column.
#[derive(Debug, Clone, Copy)]
pub enum Aggregate {
    Count,
    Sum(&'static str),
    Mean(&'static str),
    Min(&'static str),
    Max(&'static str),
    Median(&'static str),
    P99(&'static str),
    Distinct(&'static str),
}
use Aggregate::{Count, Distinct, Max, Mean, Median, Min, P99, Sum};

/// A question about a file.
pub struct Query {
    pub name: &'static str,
    pub file: Kind,
    pub keys: &'static [&'static str],
    pub aggregates: &'static [Aggregate],
    /// Only records whose status is `shipped`.
    pub shipped: bool,
}

pub const QUERIES: [Query; 14] = [
    Query {
        name: "country",
        file: Kind::Orders,
        keys: &["country"],
        aggregates: &[Count, Sum("price"), Mean("quantity")],
        shipped: false,
    },
    Query {
        name: "country, status",
        file: Kind::Orders,
        keys: &["country", "status"],
        aggregates: &[Count, Sum("price"), Min("price"), Max("price")],
        shipped: false,
    },
    Query {
        name: "product",
        file: Kind::Orders,
        keys: &["product"],
        aggregates: &[Sum("price")],
        shipped: false,
    },
    Query {
        name: "country, only shipped",
        file: Kind::Orders,
        keys: &["country"],
        aggregates: &[Count, Sum("price"), Mean("quantity")],
        shipped: true,
    },
    Query {
        name: "country, quoted",
        file: Kind::Quoted,
        keys: &["country"],
        aggregates: &[Count, Sum("price")],
        shipped: false,
    },
    Query {
        name: "one of 40 columns",
        file: Kind::Wide,
        keys: &["c2"],
        aggregates: &[Count, Sum("c6"), Mean("c5")],
        shipped: false,
    },
    Query {
        name: "country, city",
        file: Kind::Orders,
        keys: &["country", "city"],
        aggregates: &[Count, Sum("price"), Mean("quantity")],
        shipped: false,
    },
    Query {
        name: "country, 1% bad skipped",
        file: Kind::Bad,
        keys: &["country"],
        aggregates: &[Count, Sum("price"), Mean("quantity")],
        shipped: false,
    },
    Query {
        name: "country, percentiles",
        file: Kind::Orders,
        keys: &["country"],
        aggregates: &[Median("price"), P99("price")],
        shipped: false,
    },
    Query {
        name: "country, distinct",
        file: Kind::Orders,
        keys: &["country"],
        aggregates: &[Distinct("city")],
        shipped: false,
    },
    Query {
        name: "status, of a web log",
        file: Kind::Log,
        keys: &["status"],
        aggregates: &[Count, Mean("bytes")],
        shipped: false,
    },
    Query {
        name: "country, of JSON lines",
        file: Kind::Json,
        keys: &["country"],
        aggregates: &[Count, Sum("price"), Mean("quantity")],
        shipped: false,
    },
    Query {
        name: "country, of a .gz",
        file: Kind::Gzip,
        keys: &["country"],
        aggregates: &[Count, Sum("price"), Mean("quantity")],
        shipped: false,
    },
    Query {
        name: "country, of a .zst",
        file: Kind::Zstd,
        keys: &["country"],
        aggregates: &[Count, Sum("price"), Mean("quantity")],
        shipped: false,
    },
];

impl Aggregate {
    pub fn name(self) -> &'static str {
        match self {
            Count => "count",
            Sum(_) => "sum",
            Mean(_) => "mean",
            Min(_) => "min",
            Max(_) => "max",
            Median(_) => "median",
            P99(_) => "p99",
            Distinct(_) => "distinct",
        }
    }

    /// Whether its column may hold text.
    fn takes_text(self) -> bool {
        matches!(self, Count | Distinct(_))
    }

    fn column(self) -> Option<&'static str> {
        match self {
            Count => None,
            Sum(column) | Mean(column) | Min(column) | Max(column) => Some(column),
            Median(column) | P99(column) | Distinct(column) => Some(column),
        }
    }

    /// As it is written in ringfold's help, with `between` the name and the column.
    fn spelled(self, between: &str, behind: &str) -> String {
        let column = self.column();
        let column = column.map_or(String::new(), |column| format!("{between}{column}{behind}"));
        self.name().to_string() + &column
    }
}

impl Query {
    /// What the columns of the answer are.
    pub fn fields(&self) -> Vec<&'static str> {
        let keys = self.keys.iter().map(|_| "key");
        let aggregates = self.aggregates.iter().map(|aggregate| aggregate.name());
        keys.chain(aggregates).collect()
    }

    /// The question in words.
    pub fn text(&self) -> String {
        let aggregates = self.aggregates.iter().map(|one| one.spelled("(", ")"));
        let aggregates = aggregates.collect::<Vec<_>>().join(", ");
        let shipped = match self.shipped {
            true => ", where status = 'shipped'",
            false => "",
        };
        let (keys, file) = (self.keys.join(", "), self.file.name());
        format!("{aggregates} by {keys}{shipped} of {file}")
    }

    /// Whether it asks for more than sums and extremes. Only DuckDB and Polars are asked that, exactly.
    fn needs_values(&self) -> bool {
        let needs = |one: &Aggregate| matches!(one, Median(_) | P99(_) | Distinct(_));
        self.aggregates.iter().any(needs)
    }

    /// Whether a column is among its keys or aggregated.
    fn uses(&self, name: &str) -> bool {
        let aggregated = |one: &Aggregate| one.column() == Some(name);
        self.keys.contains(&name) || self.aggregates.iter().any(aggregated)
    }

    fn bad(&self) -> bool {
        self.file == Kind::Bad
    }

    /// The number of a column, from 1.
    fn number(&self, name: &str) -> usize {
        let columns = self.file.columns();
        let at = columns.iter().position(|column| column == name);
        at.expect("a query names columns of its file") + 1
    }

    /// Columns with their types: only those that are computed on are numbers.
    fn columns(&self) -> Vec<(String, &'static str)> {
        let columns = self.file.columns().into_iter().map(|name| {
            let used = self
                .aggregates
                .iter()
                .any(|one| !one.takes_text() && one.column() == Some(&*name));
            let kind = match &*name {
                "quantity" | "c5" | "bytes" if used => "integer",
                _ if used => "decimal",
                _ => "text",
            };
            (name, kind)
        });
        columns.collect()
    }
}

/// A tool that takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    Ringfold,
    DuckDb,
    Polars,
    Xan,
    Miller,
    Datamash,
    Mawk,
}

/// A tool as it is there.
#[derive(Serialize)]
pub struct Found {
    #[serde(skip)]
    pub tool: Tool,
    pub name: &'static str,
    pub version: String,
    /// The interpreter that has the library.
    #[serde(skip)]
    pub python: Option<String>,
}

impl Tool {
    pub const ALL: [Tool; 7] = [
        Tool::Ringfold,
        Tool::DuckDb,
        Tool::Polars,
        Tool::Xan,
        Tool::Miller,
        Tool::Datamash,
        Tool::Mawk,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Tool::Ringfold => "ringfold",
            Tool::DuckDb => "DuckDB",
            Tool::Polars => "Polars",
            Tool::Xan => "xan",
            Tool::Miller => "Miller",
            Tool::Datamash => "datamash",
            Tool::Mawk => "mawk",
        }
    }

    /// Looks for the tool; tells how to get it where it is missing.
    pub fn find(self) -> Result<Found, String> {
        let mut python = None;
        let version = match self {
            Tool::Ringfold => output_of(&RINGFOLD, &["--version"]),
            Tool::DuckDb | Tool::Polars => {
                let import = self.name().to_lowercase();
                let ask = format!(
                    "import sys, {import} as it; print(sys.executable); print(it.__version__)"
                );
                let told = output_of("python3", &["-c", &ask]);
                let told = told.and_then(|told| {
                    let (path, version) = told.split_once('\n')?;
                    Some((path.to_string(), version.to_string()))
                });
                told.map(|(path, version)| {
                    python = Some(path);
                    version
                })
            }
            Tool::Xan => output_of("xan", &["--version"]),
            Tool::Miller => output_of("mlr", &["--version"]),
            Tool::Datamash => output_of("datamash", &["--version"]),
            Tool::Mawk => output_of("mawk", &["-W", "version"]),
        };
        let get = match self {
            Tool::Ringfold => "it can't be built",
            Tool::DuckDb => "python3 can't import it; pip install duckdb",
            Tool::Polars => "python3 can't import it; pip install polars",
            Tool::Xan => "it isn't there; cargo install xan",
            Tool::Miller => "it isn't there; install the package miller",
            Tool::Datamash => "it isn't there; install the package datamash",
            Tool::Mawk => "it isn't there; install the package mawk",
        };
        let version = version.ok_or_else(|| format!("{}: {get}", self.name()))?;
        Ok(Found {
            tool: self,
            name: self.name(),
            version: version.lines().next().unwrap_or_default().to_string(),
            python,
        })
    }

    /// Whether the answer begins with the columns' names.
    pub fn has_header(self) -> bool {
        !matches!(self, Tool::Datamash | Tool::Mawk)
    }

    /// What stands between the fields of the answer.
    pub fn delimiter(self, query: &Query) -> char {
        match self {
            Tool::Datamash | Tool::Miller => query.file.delimiter(),
            _ => ',',
        }
    }
}

impl Found {
    /// The command line that writes the answer to standard output and may read the file from standard input;
    /// or a word on why the tool can't answer.
    pub fn line(&self, query: &Query, path: &Path) -> Result<Vec<OsString>, &'static str> {
        let is_asked = matches!(self.tool, Tool::Ringfold | Tool::DuckDb | Tool::Polars);
        if query.needs_values() && !is_asked {
            return Err("not asked");
        }
        let compressor = query.file.compressor().filter(|_| !is_asked);
        let mut line: Vec<OsString> = match self.tool {
            Tool::Ringfold => {
                let mut line = vec![RINGFOLD.clone(), "aggregate".into(), "--quiet".into()];
                line.extend(arguments(query));
                line
            }
            Tool::DuckDb => {
                let python = self.python.as_deref().unwrap_or("python3");
                let script = include_str!("query_duckdb.py");
                let sql = sql(query, path);
                return Ok([python, "-c", script, &sql].map(OsString::from).to_vec());
            }
            Tool::Polars => {
                let python = self.python.as_deref().unwrap_or("python3");
                let script = include_str!("query_polars.py");
                let asked = polars(query, path)?;
                return Ok([python, "-c", script, &asked].map(OsString::from).to_vec());
            }
            Tool::Xan => return xan(query, path),
            Tool::Miller => miller(query)?,
            Tool::Datamash => datamash(query)?,
            Tool::Mawk => mawk(query)?,
        }
        .into_iter()
        .map(OsString::from)
        .collect();
        if let Some(compressor) = compressor {
            let script = format!("{compressor} -dc | exec \"$@\"");
            let mut whole: Vec<OsString> = ["sh", "-c", &script, "sh"].map(OsString::from).to_vec();
            whole.append(&mut line);
            return Ok(whole);
        }
        if self.tool != Tool::Datamash {
            line.push(path.into());
        }
        Ok(line)
    }
}

/// How `ringfold aggregate` is asked.
pub fn arguments(query: &Query) -> Vec<String> {
    let aggregates = query.aggregates.iter().map(|one| one.spelled(":", ""));
    let mut line = ["-f", "csv"].map(String::from).to_vec();
    line.extend(match query.file {
        Kind::Log => vec!["--log".into(), "combined".into()],
        Kind::Json => vec!["--jsonl".into()],
        _ => vec!["-H".into()],
    });
    line.extend(["-k".into(), query.keys.join(",")]);
    line.extend(["-a".into(), aggregates.collect::<Vec<_>>().join(",")]);
    if query.shipped {
        line.extend(["--where", "status = 'shipped'"].map(String::from));
    }
    if query.bad() {
        line.extend(["--on-error", "skip"].map(String::from));
    }
    line
}

fn sql(query: &Query, path: &Path) -> String {
    let aggregates = query.aggregates.iter().map(|one| match one {
        Count => "count(*)".to_string(),
        Mean(column) => format!("avg({column})"),
        Median(column) => format!("quantile_cont({column}, 0.5)"),
        P99(column) => format!("quantile_cont({column}, 0.99)"),
        Distinct(column) => format!("count(DISTINCT {column})"),
        other => other.spelled("(", ")"),
    });
    let keys = query.keys.join(", ");
    let selected = [keys.clone()].into_iter().chain(aggregates);
    let selected = selected.collect::<Vec<_>>().join(", ");
    let json = query.file == Kind::Json;
    // JSON's other keys needn't be named.
    let columns = query.columns().into_iter();
    let columns = columns.filter(|(name, _)| !json || query.uses(name));
    let columns = columns.map(|(name, kind)| {
        let kind = match kind {
            "integer" => "BIGINT",
            "decimal" => "DOUBLE",
            _ => "VARCHAR",
        };
        format!("'{name}': '{kind}'")
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    let quote = match query.file {
        Kind::Wide => "",
        _ => "\"",
    };
    let more = match query.file {
        Kind::Bad => ", ignore_errors = true",
        Kind::Log => ", nullstr = '-'",
        Kind::Gzip => ", compression = 'gzip'",
        Kind::Zstd => ", compression = 'zstd'",
        _ => "",
    };
    let shipped = match query.shipped {
        true => " WHERE status = 'shipped'",
        false => "",
    };
    let path = path.display();
    let read = match json {
        true => {
            format!("read_json('{path}', format = 'newline_delimited', columns = {{{columns}}})")
        }
        false => format!(
            "read_csv('{path}', delim = '{}', header = {}, quote = '{quote}', escape = '{quote}', strict_mode = true, \
             auto_detect = false, columns = {{{columns}}}{more})",
            query.file.delimiter(),
            query.file != Kind::Log,
        ),
    };
    format!("SELECT {selected} FROM {read}{shipped} GROUP BY {keys}")
}

fn polars(query: &Query, path: &Path) -> Result<String, &'static str> {
    if query.bad() {
        // Its ignore_errors makes bad values null and keeps the records.
        return Err("keeps them");
    }
    let aggregates = query.aggregates.iter();
    let aggregates: Vec<_> = aggregates.map(|one| (one.name(), one.column())).collect();
    let asked = json!({
        "path": path,
        "json": query.file == Kind::Json,
        "header": query.file != Kind::Log,
        "null": (query.file == Kind::Log).then_some("-"),
        "separator": query.file.delimiter(),
        "quote": (query.file != Kind::Wide).then_some("\""),
        "columns": query.columns(),
        "keys": query.keys,
        "aggregates": aggregates,
        "shipped": query.shipped,
    });
    Ok(asked.to_string())
}

fn xan(query: &Query, path: &Path) -> Result<Vec<OsString>, &'static str> {
    match query.file {
        Kind::Bad => return Err("stops at them"),
        Kind::Log => return Err("no logs"),
        Kind::Json => return Err("no JSON"),
        _ => {}
    }
    let aggregates = query.aggregates.iter().map(|one| match one {
        Count => "count() as count".to_string(),
        other => format!("{} as {}", other.spelled("(", ")"), other.spelled("_", "")),
    });
    let keys = query.keys.join(",");
    let aggregates = aggregates.collect::<Vec<_>>().join(", ");
    // It groups a pipe on one thread, and a file on several.
    let script = match query.file.compressor() {
        Some(compressor) => format!(r#"{compressor} -dc "$1" | exec xan groupby "$2" "$3""#),
        None if query.shipped => {
            r#"xan filter -p 'status eq "shipped"' "$1" | xan groupby "$2" "$3""#.into()
        }
        None => r#"exec xan groupby -p "$2" "$3" "$1""#.into(),
    };
    let mut line = ["sh", "-c", &script, "sh"].map(OsString::from).to_vec();
    line.extend([path.into(), keys.into(), aggregates.into()]);
    Ok(line)
}

fn miller(query: &Query) -> Result<Vec<String>, &'static str> {
    let mut line = vec!["mlr".to_string()];
    line.extend(match query.file {
        Kind::Log => return Err("no logs"),
        Kind::Wide => vec!["--tsv".into()],
        Kind::Json => vec!["--ijsonl".into(), "--ocsv".into()],
        _ => vec!["--csv".into()],
    });
    let condition = match query.file {
        Kind::Bad => Some("NF == 10 && is_float($price) && is_int($quantity)"),
        _ if query.shipped => Some("$status == \"shipped\""),
        _ => None,
    };
    if query.bad() {
        line.push("--allow-ragged-csv-input".into());
    }
    if let Some(condition) = condition {
        line.extend(["filter", condition, "then"].map(String::from));
    }
    let mut names: Vec<&str> = query.aggregates.iter().map(|one| one.name()).collect();
    names.dedup();
    let mut columns: Vec<&str> = query
        .aggregates
        .iter()
        .flat_map(|one| one.column())
        .collect();
    columns.dedup();
    let keys = query.keys.join(",");
    // It computes each aggregate of each column, so what wasn't asked is cut out.
    let wanted = query.aggregates.iter().map(|one| {
        let column = one.column().unwrap_or(columns[0]);
        format!("{column}_{}", one.name())
    });
    let wanted = [keys.clone()].into_iter().chain(wanted).collect::<Vec<_>>();
    let stats = ["stats1", "-a", &names.join(","), "-f", &columns.join(",")];
    line.extend(stats.map(String::from));
    line.extend(["-g", &keys, "then", "cut", "-o", "-f"].map(String::from));
    line.push(wanted.join(","));
    Ok(line)
}

/// It reads standard input only.
fn datamash(query: &Query) -> Result<Vec<String>, &'static str> {
    match query.file {
        Kind::Quoted => return Err("no quotes"),
        Kind::Bad => return Err("stops at them"),
        Kind::Log => return Err("no logs"),
        Kind::Json => return Err("no JSON"),
        _ if query.shipped => return Err("no filter"),
        _ => {}
    }
    let keys = query.keys.iter().map(|key| query.number(key).to_string());
    let mut line = vec![
        "datamash".to_string(),
        format!("-t{}", query.file.delimiter()),
        "--sort".into(),
        "--header-in".into(),
        "--group".into(),
        keys.collect::<Vec<_>>().join(","),
    ];
    for one in query.aggregates {
        let column = one.column().map_or(1, |column| query.number(column));
        line.extend([one.name().to_string(), column.to_string()]);
    }
    Ok(line)
}

fn mawk(query: &Query) -> Result<Vec<String>, &'static str> {
    match query.file {
        Kind::Quoted => return Err("no quotes"),
        Kind::Json => return Err("no JSON"),
        _ => {}
    }
    let log = query.file == Kind::Log;
    // With blanks between fields, the request of a log is three.
    let number = |name: &str| query.number(name) + if log { 2 } else { 0 };
    let mut condition = if log { "NF > 9" } else { "NR > 1" }.to_string();
    if query.shipped {
        condition += &format!(" && ${} == \"shipped\"", number("status"));
    }
    if query.bad() {
        let (quantity, price) = (number("quantity"), number("price"));
        condition +=
            &format!(" && NF == 10 && ${quantity} ~ /^[0-9]+$/ && ${price} ~ /^[0-9]+\\.[0-9]+$/");
    }
    let keys = query.keys.iter().map(|key| format!("${}", number(key)));
    let key = keys.collect::<Vec<_>>().join(" \",\" ");
    let (mut each, mut format, mut values) = (String::new(), String::new(), String::new());
    for (at, one) in query.aggregates.iter().enumerate() {
        let value = one.column().map(|column| format!("${}", number(column)));
        let value = value.unwrap_or_default();
        match one {
            Count => {}
            Mean(_) if log => {
                each += &format!("if ({value} != \"-\") {{ a{at}[k] += {value}; m{at}[k]++ }} ")
            }
            Sum(_) | Mean(_) => each += &format!("a{at}[k] += {value}; "),
            Min(_) => {
                each +=
                    &format!("if (!(k in n) || {value} + 0 < a{at}[k]) a{at}[k] = {value} + 0; ")
            }
            Max(_) => {
                each +=
                    &format!("if (!(k in n) || {value} + 0 > a{at}[k]) a{at}[k] = {value} + 0; ")
            }
            Median(_) | P99(_) | Distinct(_) => return Err("not asked"),
        }
        // By itself it prints six digits.
        let (shape, printed) = match one {
            Count => (",%d", "n[k]".to_string()),
            Mean(_) if log => (
                ",%s",
                format!("(m{at}[k] ? sprintf(\"%.15g\", a{at}[k] / m{at}[k]) : \"\")"),
            ),
            Mean(_) => (",%.15g", format!("a{at}[k] / n[k]")),
            _ => (",%.2f", format!("a{at}[k]")),
        };
        format += shape;
        values += &format!(", {printed}");
    }
    let script = format!(
        "{condition} {{ k = {key}; {each}n[k]++ }} END {{ for (k in n) printf \"%s{format}\\n\", k{values} }}"
    );
    let separator = match query.file {
        Kind::Wide => "-F\\t",
        Kind::Log => "-F ",
        _ => "-F,",
    };
    Ok(vec!["mawk".into(), separator.into(), script])
}
