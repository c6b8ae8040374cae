//! The departures from the plainest query of each format: what is asked, how, and what it may cost.

use crate::files::Kind;
use crate::grid::variants::Variant;

/// A file that is asked.
#[derive(Clone, Copy)]
pub enum Input {
    /// Of those of the other benchmarks.
    File(Kind),
    /// Orders, with something changed in each of them.
    Variant(&'static Variant),
    /// A file of `key;value`, by its name.
    Pairs(&'static str),
    /// Orders through a pipe.
    Pipe,
}

/// How DuckDB and Polars are asked the same.
#[derive(Clone, Copy)]
pub enum Peers {
    /// They can't do it, or only by other means.
    None,
    /// A query of the table `orders`, and one of the lazy frame `rows`; either may be empty. The first columns are keys.
    Ask(&'static str, &'static str),
    /// The same, where several answers are right: only keys are compared.
    AnyOf(&'static str, &'static str),
}

/// A departure from the plainest query of its format.
#[derive(Clone, Copy)]
pub struct Departure {
    pub name: &'static str,
    pub input: Input,
    /// Words as in a shell.
    pub flags: &'static str,
    /// The most that it may cost: processor time, as a multiple of the plainest query's.
    pub limit: f64,
    pub peers: Peers,
    /// The flags of what it is a multiple of, if that isn't the plainest query.
    pub base: Option<&'static str>,
}

impl Departure {
    /// The flags one by one.
    pub fn words(&self) -> Vec<String> {
        shlex::split(self.flags).expect("quotes come in pairs")
    }
}

/// The plainest query of a format, and the departures from it.
pub struct Part {
    pub name: &'static str,
    pub plainest: Departure,
    pub departures: &'static [Departure],
}

/// No limit but the peers': what is to be sorted and written depends on the data.
pub const FREE: f64 = f64::INFINITY;

const fn row(
    name: &'static str,
    input: Input,
    flags: &'static str,
    limit: f64,
    peers: Peers,
) -> Departure {
    Departure {
        name,
        input,
        flags,
        limit,
        peers,
        base: None,
    }
}

/// The same of DuckDB and of Polars: keys, values, and a condition or nothing. Answers are in the order of their keys.
macro_rules! peers {
    ($sql:literal, $values:literal, $condition:literal; $polars:literal, $aggregates:literal, $filter:literal) => {
        Peers::Ask(
            concat!(
                "SELECT ",
                $sql,
                ", ",
                $values,
                " FROM orders",
                $condition,
                " GROUP BY ALL ORDER BY ",
                $sql
            ),
            concat!(
                "rows",
                $filter,
                ".group_by(",
                $polars,
                ").agg(",
                $aggregates,
                ").sort(",
                $polars,
                ")"
            ),
        )
    };
}

/// What the plainest query asks, by other keys or on a condition.
macro_rules! plain {
    ($sql:literal, $condition:literal; $polars:literal, $filter:literal) => {
        peers!(
            $sql, "count(*), sum(price), avg(quantity)", $condition;
            $polars, "pl.len(), pl.col('price').sum(), pl.col('quantity').mean()", $filter
        )
    };
}

mod computed;

const ORDERS: Input = Input::File(Kind::Orders);
const PLAIN: &str = "-k country -a count,sum:price,mean:quantity";
const PLAIN_PEERS: Peers = plain!("country", ""; "'country'", "");

const PLAINEST: Departure = row(
    "country: count, sum, mean",
    ORDERS,
    PLAIN,
    FREE,
    PLAIN_PEERS,
);

const fn variant(name: &'static str, variant: &'static Variant, limit: f64) -> Departure {
    row(name, Input::Variant(variant), PLAIN, limit, PLAIN_PEERS)
}

const fn keyed(name: &'static str, flags: &'static str, limit: f64, peers: Peers) -> Departure {
    row(name, ORDERS, flags, limit, peers)
}

/// What the peers aren't asked.
const fn alone(name: &'static str, input: Input, flags: &'static str, limit: f64) -> Departure {
    row(name, input, flags, limit, Peers::None)
}

pub const PARTS: [Part; 9] = [
    Part {
        name: "CSV",
        plainest: PLAINEST,
        departures: &[
            variant("6 decimals", &Variant::SIX_DECIMALS, 1.5),
            variant("15 decimals", &Variant::FIFTEEN_DECIMALS, 2.0),
            variant("nanoseconds, 19 digits", &Variant::NANOSECONDS, 2.0),
            variant("0 to 4 decimals", &Variant::MIXED_DECIMALS, 2.0),
            variant("signs", &Variant::SIGNS, 2.0),
            row(
                "exponents in 1 of 10, --float",
                Input::Variant(&Variant::EXPONENTS),
                "-k country -a count,sum:price,mean:quantity --float",
                2.0,
                PLAIN_PEERS,
            ),
            alone(
                "blanks around numbers",
                Input::Variant(&Variant::BLANKS),
                PLAIN,
                1.5,
            ),
            row(
                "decimal comma",
                Input::Variant(&Variant::DECIMAL_COMMA),
                "-d ';' --decimal-comma -k country -a count,sum:price,mean:quantity",
                1.5,
                PLAIN_PEERS,
            ),
            row(
                "comments, 1 of 100",
                Input::Variant(&Variant::COMMENTS),
                "--comment '#' -k country -a count,sum:price,mean:quantity",
                1.2,
                PLAIN_PEERS,
            ),
            variant("CRLF", &Variant::CRLF, 2.0),
            variant("nulls in 1 of 4", &Variant::NULLS, 2.0),
            variant("all fields quoted", &Variant::ALL_QUOTED, 2.0),
            variant("doubled quotes elsewhere", &Variant::DOUBLED_ELSEWHERE, 1.2),
            variant(
                "doubled quotes in 1 of 10 keys",
                &Variant::DOUBLED_IN_KEY,
                2.0,
            ),
            row(
                "newlines in quotes",
                Input::File(Kind::Quoted),
                PLAIN,
                2.0,
                PLAIN_PEERS,
            ),
            alone(
                "1% malformed, skipped",
                Input::File(Kind::Bad),
                "-k country -a count,sum:price,mean:quantity --on-error skip",
                2.0,
            ),
            alone(
                "1% malformed, null",
                Input::Variant(&Variant::NOT_A_NUMBER),
                "-k country -a count,sum:price,mean:quantity --on-error null",
                2.0,
            ),
            row(
                "N/A as null",
                Input::Variant(&Variant::NA),
                "-k country -a count,sum:price,mean:quantity --null-value N/A",
                2.0,
                PLAIN_PEERS,
            ),
            alone("through a pipe", Input::Pipe, PLAIN, 2.0),
        ],
    },
    computed::PART,
    Part {
        name: "Keys",
        plainest: PLAINEST,
        departures: &[
            keyed(
                "no key",
                "-a count,sum:price,mean:quantity",
                2.0,
                Peers::Ask(
                    "SELECT count(*), sum(price), avg(quantity) FROM orders",
                    "rows.select(pl.len(), pl.col('price').sum(), pl.col('quantity').mean())",
                ),
            ),
            keyed(
                "two columns",
                "-k country,status -a count,sum:price,mean:quantity",
                2.0,
                plain!("country, status", ""; "'country','status'", ""),
            ),
            keyed(
                "time@hour",
                "-k time@hour -a count,sum:price,mean:quantity",
                2.0,
                plain!("time[:13]", ""; "pl.col('time').str.head(13)", ""),
            ),
            keyed(
                "time@day",
                "-k time@day -a count,sum:price,mean:quantity",
                1.5,
                plain!("time[:10]", ""; "pl.col('time').str.head(10)", ""),
            ),
            alone(
                "time@weekday",
                ORDERS,
                "-k time@weekday -a count,sum:price,mean:quantity",
                2.0,
            ),
            alone(
                "time@10m",
                ORDERS,
                "-k time@10m -a count,sum:price,mean:quantity",
                FREE,
            ),
            variant("55 bytes", &Variant::LONG_KEYS, 2.0),
            variant("200 bytes", &Variant::LONGER_KEYS, 2.0),
            keyed(
                "5,000 cities",
                "-k city -a count,sum:price,mean:quantity",
                2.0,
                plain!("city", ""; "'city'", ""),
            ),
            keyed(
                "50,000 products",
                "-k product -a count,sum:price,mean:quantity",
                FREE,
                plain!("product", ""; "'product'", ""),
            ),
            keyed(
                "a million: country, city",
                "-k country,city -a count,sum:price,mean:quantity",
                FREE,
                plain!("country, city", ""; "'country','city'", ""),
            ),
            keyed(
                "nearly all: 3 columns",
                "-k country,city,product -a count,sum:price,mean:quantity",
                FREE,
                plain!("country, city, product", ""; "'country','city','product'", ""),
            ),
            keyed(
                "all: id",
                "-k id -a count,sum:price,mean:quantity",
                FREE,
                plain!("id", ""; "'id'", ""),
            ),
            alone(
                "all: id, --memory 128M",
                ORDERS,
                "-k id -a count,sum:price,mean:quantity --memory 128M",
                FREE,
            ),
            keyed(
                "all: id, --top 10 by sum",
                "-k id -a sum:price --sort sum_price:desc,id --top 10",
                FREE,
                Peers::Ask(
                    "SELECT id, sum(price) s FROM orders GROUP BY ALL ORDER BY s DESC, id LIMIT 10",
                    "rows.group_by('id').agg(pl.col('price').sum()).sort('price','id', descending=[True,False]).head(10)",
                ),
            ),
        ],
    },
    Part {
        name: "Conditions",
        plainest: PLAINEST,
        departures: &[
            row(
                "status = 'shipped'",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity --where \"status = 'shipped'\"",
                2.0,
                plain!("country", " WHERE status = 'shipped'"; "'country'", ".filter(pl.col('status') == 'shipped')"),
            ),
            row(
                "price > 100",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity --where 'price > 100'",
                2.0,
                plain!("country", " WHERE price > 100"; "'country'", ".filter(pl.col('price') > 100)"),
            ),
            row(
                "status in, and quantity",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity --where \"status in ('shipped', 'pending') and quantity >= 5\"",
                2.0,
                plain!("country", " WHERE status IN ('shipped', 'pending') AND quantity >= 5"; "'country'", ".filter(pl.col('status').is_in(['shipped','pending']) & (pl.col('quantity') >= 5))"),
            ),
            row(
                "a pattern: product ~ 'Lamp'",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity --where \"product ~ 'Lamp'\"",
                2.0,
                plain!("country", " WHERE regexp_matches(product, 'Lamp')"; "'country'", ".filter(pl.col('product').str.contains('Lamp'))"),
            ),
            row(
                "a pattern: product ~ '^(Mug|Rope) .*7$'",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity --where \"product ~ '^(Mug|Rope) .*7\\$'\"",
                2.0,
                plain!("country", " WHERE regexp_matches(product, '^(Mug|Rope) .*7$')"; "'country'", ".filter(pl.col('product').str.contains('^(Mug|Rope) .*7$'))"),
            ),
            row(
                "note is null",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity --where 'note is null'",
                2.0,
                plain!("country", " WHERE note IS NULL"; "'country'", ".filter(pl.col('note').is_null())"),
            ),
            alone(
                "--having count > 1000",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity --having 'count > 1000'",
                2.0,
            ),
        ],
    },
    Part {
        name: "Aggregates",
        plainest: PLAINEST,
        departures: &[
            keyed(
                "count alone",
                "-k country -a count",
                2.0,
                peers!("country", "count(*)", ""; "'country'", "pl.len()", ""),
            ),
            keyed(
                "min, max, range",
                "-k country -a min:price,max:price,range:price",
                2.0,
                peers!("country", "min(price), max(price), max(price) - min(price)", ""; "'country'", "a=pl.col('price').min(), b=pl.col('price').max(), c=pl.col('price').max()-pl.col('price').min()", ""),
            ),
            keyed(
                "stddev",
                "-k country -a stddev:price",
                2.0,
                peers!("country", "stddev_samp(price)", ""; "'country'", "pl.col('price').std()", ""),
            ),
            keyed(
                "var, var_pop of 2 columns",
                "-k country -a var:price,var_pop:quantity",
                2.0,
                peers!("country", "var_samp(price), var_pop(quantity)", ""; "'country'", "pl.col('price').var(), pl.col('quantity').var(ddof=0)", ""),
            ),
            row(
                "first, last",
                ORDERS,
                "-k country -a first:city,last:city",
                2.0,
                Peers::Ask(
                    "",
                    "rows.group_by('country').agg(a=pl.col('city').first(), b=pl.col('city').last()).sort('country')",
                ),
            ),
            keyed(
                "lexmin, lexmax",
                "-k country -a lexmin:city,lexmax:city",
                2.0,
                peers!("country", "min(city), max(city)", ""; "'country'", "a=pl.col('city').min(), b=pl.col('city').max()", ""),
            ),
            keyed(
                "eight of 3 columns",
                "-k country -a count,sum:price,mean:price,min:price,max:price,sum:quantity,mean:quantity,sum:discount",
                2.0,
                peers!("country", "count(*), sum(price), avg(price), min(price), max(price), sum(quantity), avg(quantity), sum(discount)", ""; "'country'", "pl.len(), a=pl.col('price').sum(), b=pl.col('price').mean(), c=pl.col('price').min(), d=pl.col('price').max(), e=pl.col('quantity').sum(), f=pl.col('quantity').mean(), g=pl.col('discount').sum()", ""),
            ),
            keyed(
                "median",
                "-k country -a median:price",
                FREE,
                peers!("country", "quantile_cont(price, 0.5)", ""; "'country'", "pl.col('price').quantile(0.5, 'linear')", ""),
            ),
            keyed(
                "p50, p99",
                "-k country -a p50:price,p99:price",
                FREE,
                peers!("country", "quantile_cont(price, 0.5), quantile_cont(price, 0.99)", ""; "'country'", "a=pl.col('price').quantile(0.5, 'linear'), b=pl.col('price').quantile(0.99, 'linear')", ""),
            ),
            keyed(
                "p50 of 50,000 groups",
                "-k product -a p50:price",
                FREE,
                peers!("product", "quantile_cont(price, 0.5)", ""; "'product'", "pl.col('price').quantile(0.5, 'linear')", ""),
            ),
            alone("approx_p99", ORDERS, "-k country -a approx_p99:price", FREE),
            keyed(
                "distinct of 5,000 texts",
                "-k country -a distinct:city",
                FREE,
                peers!("country", "count(DISTINCT city)", ""; "'country'", "pl.col('city').n_unique()", ""),
            ),
            keyed(
                "distinct of 50,000 texts",
                "-k country -a distinct:product",
                FREE,
                peers!("country", "count(DISTINCT product)", ""; "'country'", "pl.col('product').n_unique()", ""),
            ),
            keyed(
                "distinct of as many as records",
                "-k country -a distinct:id",
                FREE,
                peers!("country", "count(DISTINCT id)", ""; "'country'", "pl.col('id').n_unique()", ""),
            ),
            alone(
                "approx_distinct",
                ORDERS,
                "-k country -a approx_distinct:id",
                FREE,
            ),
            row(
                "mode of 50,000 texts",
                ORDERS,
                "-k country -a mode:product",
                FREE,
                Peers::AnyOf(
                    "SELECT country, mode(product) FROM orders GROUP BY ALL ORDER BY 1",
                    "rows.group_by('country').agg(pl.col('product').mode().first()).sort('country')",
                ),
            ),
            alone(
                "-f json",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity -f json",
                2.0,
            ),
            alone(
                "--save-partial",
                ORDERS,
                "-k country -a count,sum:price,mean:quantity --save-partial /dev/null --report-too",
                2.0,
            ),
        ],
    },
    Part {
        name: "40 columns",
        plainest: alone(
            "the second: count, sum, mean",
            Input::File(Kind::Wide),
            "-k c2 -a count,sum:c6,mean:c5",
            FREE,
        ),
        departures: &[
            alone(
                "the last",
                Input::File(Kind::Wide),
                "-k c39 -a count,sum:c37",
                FREE,
            ),
            alone(
                "12 aggregates",
                Input::File(Kind::Wide),
                "-k c2 -a sum:c5,sum:c6,sum:c7,sum:c10,sum:c11,sum:c13,sum:c14,sum:c17,sum:c19,sum:c22,sum:c23,sum:c25",
                FREE,
            ),
            alone(
                "four conditions",
                Input::File(Kind::Wide),
                "-k c2 -a count,sum:c6,mean:c5 --where \"c5 > 10 and c6 < 9000 and c7 > 5 and c10 != '7'\"",
                2.0,
            ),
        ],
    },
    Part {
        name: "A web log",
        plainest: alone(
            "status: count, mean",
            Input::File(Kind::Log),
            "--log combined -k status -a count,mean:bytes",
            FREE,
        ),
        departures: &[
            alone(
                "time@hour",
                Input::File(Kind::Log),
                "--log combined -k time@hour -a count,mean:bytes",
                1.5,
            ),
            alone(
                "agent",
                Input::File(Kind::Log),
                "--log combined -k agent -a count,mean:bytes",
                2.0,
            ),
            alone(
                "method, protocol",
                Input::File(Kind::Log),
                "--log combined -k method,protocol -a count,mean:bytes",
                2.0,
            ),
            alone(
                "host: nearly all differ",
                Input::File(Kind::Log),
                "--log combined -k host -a count,mean:bytes",
                FREE,
            ),
            alone(
                "status >= 500",
                Input::File(Kind::Log),
                "--log combined -k status -a count,mean:bytes --where 'status >= 500'",
                2.0,
            ),
            alone(
                "agent ~ 'Firefox'",
                Input::File(Kind::Log),
                "--log combined -k status -a count,mean:bytes --where \"agent ~ 'Firefox'\"",
                2.0,
            ),
        ],
    },
    Part {
        name: "JSON lines and compressed files",
        plainest: alone(
            "country: count, sum, mean",
            Input::File(Kind::Json),
            PLAIN,
            FREE,
        ),
        departures: &[
            alone(
                "country, status",
                Input::File(Kind::Json),
                "-k country,status -a count,sum:price,mean:quantity",
                2.0,
            ),
            alone(
                "time@hour",
                Input::File(Kind::Json),
                "-k time@hour -a count,sum:price,mean:quantity",
                2.0,
            ),
            alone(
                "status = 'shipped'",
                Input::File(Kind::Json),
                "-k country -a count,sum:price,mean:quantity --where \"status = 'shipped'\"",
                2.0,
            ),
            alone("a .gz of CSV", Input::File(Kind::Gzip), PLAIN, FREE),
            alone("a .zst of CSV", Input::File(Kind::Zstd), PLAIN, FREE),
        ],
    },
    Part {
        name: "Lines of key;value, without -k",
        plainest: alone("413 keys, tenths", Input::Pairs("413-keys.txt"), "", FREE),
        departures: &[
            alone("10,000 keys", Input::Pairs("10000-keys.txt"), "", FREE),
            alone("a million keys", Input::Pairs("1000000-keys.txt"), "", FREE),
            alone(
                "a million keys, --memory 32M",
                Input::Pairs("1000000-keys.txt"),
                "--memory 32M",
                FREE,
            ),
            alone("a long prefix", Input::Pairs("prefix.txt"), "", 2.0),
            alone("cents", Input::Pairs("413-cents.txt"), "", 2.0),
            alone("integers", Input::Pairs("413-integers.txt"), "", 2.0),
            alone("15 decimals", Input::Pairs("413-fifteen.txt"), "", 2.0),
            alone("19 digits", Input::Pairs("413-nineteen.txt"), "", 2.0),
            alone(
                "as a query",
                Input::Pairs("413-keys.txt"),
                "-d ';' -k 1 -a min:2,mean:2,max:2",
                FREE,
            ),
        ],
    },
];
