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
        let want = answer(&query, None, text.as_bytes(), block);
        for level in Level::available() {
            prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
        }
    }
}
