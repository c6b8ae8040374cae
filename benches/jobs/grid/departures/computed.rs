//! Values that are computed of columns, each beside the query without them.

use super::{Departure, Input, ORDERS, PLAINEST, Part, Peers, alone, keyed};
use crate::files::Kind;

const PRODUCTS: &str = "-k product -a count,sum:price,mean:quantity";

/// A departure from another query of the same file.
const fn over(base: &'static str, departure: Departure) -> Departure {
    Departure {
        base: Some(base),
        ..departure
    }
}

pub(super) const PART: Part = Part {
    name: "Computed",
    plainest: PLAINEST,
    departures: &[
        over(
            "-k country -a sum:price",
            keyed(
                "sum(price * quantity), over sum(price)",
                "-k country -a 'sum(price * quantity)'",
                1.25,
                peers!(
                    "country", "sum(price * quantity)", "";
                    "'country'", "(pl.col('price') * pl.col('quantity')).sum()", ""
                ),
            ),
        ),
        over(
            "-k country -a count",
            keyed(
                "count_if(quantity > 10) beside count, over count",
                "-k country -a 'count,count_if(quantity > 10)'",
                1.15,
                peers!(
                    "country", "count(*), count(*) FILTER (WHERE quantity > 10)", "";
                    "'country'", "a=pl.len(), b=(pl.col('quantity') > 10).sum()", ""
                ),
            ),
        ),
        keyed(
            "lower(country)",
            "-k 'lower(country)' -a count,sum:price,mean:quantity",
            1.5,
            plain!("lower(country)", ""; "pl.col('country').str.to_lowercase()", ""),
        ),
        over(
            "-k city -a count,sum:price,mean:quantity",
            keyed(
                "lower(city), over city",
                "-k 'lower(city)' -a count,sum:price,mean:quantity",
                1.5,
                plain!("lower(city)", ""; "pl.col('city').str.to_lowercase()", ""),
            ),
        ),
        over(
            PRODUCTS,
            keyed(
                "time_bucket, 5 minutes, over products",
                "-k \"time_bucket('5 minutes', time) as bucket\" -a count,sum:price,mean:quantity",
                1.3,
                Peers::Ask(
                    "SELECT strftime(time_bucket(INTERVAL 5 MINUTE, time::TIMESTAMP), '%Y-%m-%dT%H:%M') AS k, count(*), sum(price), avg(quantity) FROM orders GROUP BY ALL ORDER BY k",
                    "rows.group_by(k=pl.col('time').str.to_datetime('%Y-%m-%dT%H:%M:%SZ').dt.truncate('5m').dt.to_string('%Y-%m-%dT%H:%M')).agg(pl.len(), pl.col('price').sum(), pl.col('quantity').mean()).sort('k')",
                ),
            ),
        ),
        over(
            PRODUCTS,
            keyed(
                "the same in a time zone",
                "-k \"time_bucket('5 minutes', time, 'Asia/Kathmandu') as bucket\" -a count,sum:price,mean:quantity",
                1.5,
                Peers::Ask(
                    "SELECT strftime(time_bucket(INTERVAL 5 MINUTE, timezone('Asia/Kathmandu', time::TIMESTAMPTZ)), '%Y-%m-%dT%H:%M') AS k, count(*), sum(price), avg(quantity) FROM orders GROUP BY ALL ORDER BY k",
                    "rows.group_by(k=pl.col('time').str.to_datetime('%Y-%m-%dT%H:%M:%SZ', time_zone='UTC').dt.convert_time_zone('Asia/Kathmandu').dt.replace_time_zone(None).dt.truncate('5m').dt.to_string('%Y-%m-%dT%H:%M')).agg(pl.len(), pl.col('price').sum(), pl.col('quantity').mean()).sort('k')",
                ),
            ),
        ),
        over(
            PRODUCTS,
            alone(
                "the same in Europe/Berlin",
                ORDERS,
                "-k \"time_bucket('5 minutes', time, 'Europe/Berlin')\" -a count,sum:price,mean:quantity",
                1.5,
            ),
        ),
        over(
            "--log combined -k path -a count,mean:bytes",
            alone(
                "url_path(path) of a web log, over path",
                Input::File(Kind::Log),
                "--log combined -k 'url_path(path)' -a count,mean:bytes",
                1.3,
            ),
        ),
        keyed(
            "--lookup of 200 rows, its region",
            "-k region -a count,sum:price,mean:quantity --lookup data/jobs/countries.csv --on country",
            2.0,
            Peers::Ask(
                "SELECT region, count(*), sum(price), avg(quantity) FROM orders LEFT JOIN 'data/jobs/countries.csv' USING (country) \
                 GROUP BY ALL ORDER BY 1",
                "rows.join(pl.scan_csv('data/jobs/countries.csv'), on='country', how='left').group_by('region').agg(\
                 pl.len(), pl.col('price').sum(), pl.col('quantity').mean()).sort('region')",
            ),
        ),
        alone(
            "three queries, by --next",
            ORDERS,
            "-k country -a count,sum:price,mean:quantity --next -k status -a count,sum:price --next -k country -a max:price \
             --where 'quantity > 10'",
            3.0,
        ),
        keyed(
            "price * 2 > quantity",
            "-k country -a count,sum:price,mean:quantity --where 'price * 2 > quantity'",
            2.0,
            plain!("country", " WHERE price * 2 > quantity"; "'country'", ".filter(pl.col('price') * 2 > pl.col('quantity'))"),
        ),
        alone(
            "sum(round(price))",
            ORDERS,
            "-k country -a 'count,sum(round(price)),mean:quantity'",
            2.0,
        ),
        alone(
            "sum(price / (quantity + 1))",
            ORDERS,
            "-k country -a 'count,sum(price / (quantity + 1)),mean:quantity'",
            2.0,
        ),
        alone(
            "sum(price) / sum(quantity)",
            ORDERS,
            "-k country -a 'count,sum(price) / sum(quantity),mean:quantity'",
            1.25,
        ),
    ],
};
