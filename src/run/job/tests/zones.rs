//! Times in zones: the passes of every level against single records, also where the first time without an offset is.

use super::*;

fn time() -> impl Strategy<Value = String> {
    // Around the end and the beginning of summer time in several zones, and at other times.
    let near = prop::sample::select(
        &[
            1_792_888_200_i64,
            1_774_746_000,
            1_775_316_600,
            1_500_000_000,
        ][..],
    );
    let instant = (near, -9000..9000_i64).prop_map(|(near, by)| near + by);
    (instant, 0..9_u8, -8..8_i64).prop_map(|(instant, form, quarters)| {
        let ahead = quarters * 900;
        let local = jiff::Timestamp::from_second(instant + ahead).unwrap();
        let local = jiff::tz::TimeZone::UTC.to_datetime(local);
        let sign = if ahead < 0 { '-' } else { '+' };
        let (hours, minutes) = (ahead.abs() / 3600, ahead.abs() / 60 % 60);
        match form {
            0 => instant.to_string(),
            1 => format!("{local}{sign}{hours:02}:{minutes:02}"),
            2 => local
                .strftime(&format!("%d/%b/%Y:%H:%M:%S {sign}{hours:02}{minutes:02}"))
                .to_string(),
            3 => local.to_string(),
            4 => local.strftime("%Y-%m-%d %H:%M").to_string(),
            5 => local.strftime("%a %b %e %H:%M:%S CET %Y").to_string(),
            6 => String::new(),
            _ => local.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }
    })
}

const ZONES: &[&str] = &[
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "UTC",
];
const ZONED_KEYS: &[&str] = &[
    "1@hour",
    "1@5m",
    "1@day",
    "1@weekday[America/New_York]",
    "1@second[Europe/Berlin]",
    "hour($1)",
    "hour(coalesce($2, $1), 'Europe/Berlin')",
    "time_bucket('7 minutes', $1)",
    "date_trunc('hour', $2, 'Australia/Lord_Howe')",
    "left($1@hour, 10)",
];
const ZONED_VALUES: &[&str] = &[
    "max(epoch($1))",
    "max:1@time",
    "min:2@time",
    "sum(epoch($1) - epoch($2))",
    "count_if($1@hour = '2026-10-25T02')",
    "lexmax($2@minute)",
    "count_if($1 > $2@hour)",
];

/// Expressions of times in zones: numbers, texts and conditions.
#[derive(Debug, Clone)]
struct Zoned {
    number: String,
    text: String,
    condition: String,
}

fn zoned() -> impl Strategy<Value = Zoned> {
    let time = prop::sample::select(&["$1", "$2", "coalesce($2, $1)", "if($3 > 1, $1, $2)"][..]);
    let zone = prop::option::weighted(0.7, prop::sample::select(ZONES));
    let part = [
        "year", "quarter", "month", "day", "hour", "minute", "second", "weekday", "epoch",
    ];
    let part = prop::sample::select(part.to_vec());
    let bucket = prop::sample::select(
        &[
            "date_trunc('minute'",
            "date_trunc('hour'",
            "date_trunc('week'",
            "time_bucket('1 second'",
            "time_bucket('5 minutes'",
            "time_bucket('45 minutes'",
            "time_bucket('6 hours'",
            "time_bucket('2 days'",
            "time_bucket('1 quarter'",
        ][..],
    );
    let unit = prop::sample::select(&["hour", "10m", "day", "week", "weekday", "second"][..]);
    let leaf = (time, zone, part, bucket, unit, any::<bool>());
    let leaf = leaf.prop_map(|(time, zone, part, bucket, unit, is_cut)| {
        let argument = zone.map_or(String::new(), |zone| format!(", '{zone}'"));
        let bracket = zone.map_or(String::new(), |zone| format!("[{zone}]"));
        let column = if time.len() == 2 { time } else { "$1" };
        Zoned {
            number: format!("{part}({time}{argument})"),
            text: match is_cut {
                true => format!("{column}@{unit}{bracket}"),
                false => format!("{bucket}, {time}{argument})"),
            },
            condition: format!("{part}({time}{argument}) > 3"),
        }
    });
    leaf.prop_recursive(2, 6, 2, |inner| {
        (inner.clone(), inner, 0..4_u8).prop_map(|(one, two, form)| match form {
            0 => Zoned {
                number: format!("({} - {})", one.number, two.number),
                text: format!("({} || {})", one.text, two.text),
                condition: format!("{} < {}", one.text, two.text),
            },
            1 => Zoned {
                number: format!("if({}, {}, {})", one.condition, one.number, two.number),
                text: format!("case when {} then {} end", two.condition, one.text),
                condition: format!("({} or {})", one.condition, two.condition),
            },
            2 => Zoned {
                number: format!("length({})", two.text),
                text: format!("coalesce({}, {})", one.text, two.text),
                condition: format!("not ({} <= {})", one.number, two.number),
            },
            _ => Zoned {
                number: format!("bin({}, 7)", one.number),
                text: format!("right({}, 9)", one.text),
                condition: format!("({} and {})", one.condition, two.condition),
            },
        })
    })
}

const ZONED_CONDITIONS: &[&str] = &[
    "$1 >= '2026-10-25 02:30' and $3 > 1",
    "$1 between '2026-03-29' and '2026-10-25T01:00Z' or $2 is null",
    "$1@hour[Australia/Lord_Howe] < '2026-04-05T02' or hour($2) > 1",
    "$3 > 2 and $2 in ('2026-10-25 02:30:00', '2026-10-25')",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn passes_give_what_single_records_give_in_zones(
        rows in prop::collection::vec((time(), time(), 0..4_u8), 1..30),
        repeat in 1..30_usize,
        zone in prop::option::weighted(0.8, prop::sample::select(ZONES)),
        input in prop::option::weighted(0.3, prop::sample::select(ZONES)),
        key in prop::option::of(prop::sample::select(ZONED_KEYS)),
        value in prop::option::of(prop::sample::select(ZONED_VALUES)),
        condition in prop::option::of(prop::sample::select(ZONED_CONDITIONS)),
        made in zoned(),
        (is_key, is_value, is_condition) in any::<(bool, bool, bool)>(),
        on_error in prop::sample::select(&[OnError::Skip, OnError::Null, OnError::Fail][..]),
        block in 1..3000_usize,
    ) {
        let rows = rows.iter().map(|(one, two, number)| format!("{one},{two},{number}\n"));
        let text = rows.collect::<String>().repeat(repeat);
        let mut query = Query::new(b',').header(false).on_error(on_error);
        if let Some(zone) = zone {
            query = query.time_zone(zone).unwrap();
        }
        if let Some(input) = input {
            query = query.input_time_zone(input).unwrap();
        }
        if let Some(key) = key {
            query = query.key_text(key).unwrap();
        }
        if let Some(value) = value {
            query = query.aggregate_text(value).unwrap();
        }
        if let Some(condition) = condition {
            query = query.filter(condition).unwrap();
        }
        if is_key {
            query = query.key_text(&made.text).unwrap();
        }
        if is_value {
            query = query.aggregate_text(&format!("sum({})", made.number)).unwrap();
            query = query.aggregate_text(&format!("lexmin({})", made.text)).unwrap();
        }
        if is_condition {
            query = query.filter(&made.condition).unwrap();
        }
        let want = answer(&query, None, text.as_bytes(), block);
        for level in Level::available() {
            prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
        }
    }
}
