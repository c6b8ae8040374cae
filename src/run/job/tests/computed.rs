//! Values that are computed, in the passes and record by record.

use super::*;

/// Numbers of all sizes, many of them with few digits, so that halves are met and divisors are zero.
fn operand() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "-?[0-9]{1,2}(\\.[05]|\\.[0-9]{1,3})?",
        4 => "-?[0-9]{1,7}(\\.[0-9]{1,6})?",
        1 => "-?0\\.0{1,12}[0-9]{1,6}",
        1 => "-?[0-9]{10,20}(\\.[0-9]{1,5})?",
        2 => prop::sample::select(&["", "0", "0.00", "1", "-1", "4611686018427387903", "4611686018427387904"][..])
            .prop_map(String::from),
    ]
}

/// Formulas of three columns.
fn formula() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => (1..4).prop_map(|column| format!("${column}")),
        1 => prop::sample::select(&["0.5", "3", "100", "1024", "0", "0.001"][..]).prop_map(String::from),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let calls = &[
            "-#",
            "abs(#)",
            "sign(#)",
            "floor(#)",
            "ceil(#)",
            "round(#)",
            "round(#, 1)",
            "round(#, 3)",
            "trunc(#, 2)",
            "round(#, -1)",
            "trunc(#, -2)",
            "round(#, 17)",
            "nullif(#, 0)",
            "nullif(#, 0.50)",
            "round(#, 40)",
            "trunc(#, -30)",
        ][..];
        let pairs = &["+", "-", "*", "/", "/", "/", "%"][..];
        prop_oneof![
            (prop::sample::select(calls), inner.clone())
                .prop_map(|(call, of)| call.replace('#', &of)),
            (inner.clone(), prop::sample::select(pairs), inner.clone())
                .prop_map(|(one, sign, two)| format!("({one} {sign} {two})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(one, two, three)| format!("if($1 > {one}, {two}, {three})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Numbers that are computed in passes are those of single records, to the last decimal.
    #[test]
    fn formulas_give_what_single_records_give(
        rows in prop::collection::vec(prop::collection::vec(operand(), 3), 1..40),
        repeat in 1..20_usize,
        formulas in prop::collection::vec(formula(), 1..4),
        condition in prop::option::weighted(0.3, (formula(), formula())),
        is_keyed: bool,
        on_error in prop::sample::select(&[OnError::Skip, OnError::Null, OnError::Fail][..]),
        block in 1..3000_usize,
    ) {
        let lines = rows.iter().map(|row| format!("{}\n", row.join(",")));
        let text = lines.collect::<String>().repeat(repeat);
        let mut query = Query::new(b',').on_error(on_error);
        if is_keyed {
            query = query.key(1);
        }
        for formula in &formulas {
            for name in ["sum", "min", "max"] {
                // What is constant, or as large as no number, is refused.
                query = match query.clone().aggregate_text(&format!("{name}({formula})")) {
                    Ok(query) => query,
                    Err(_) => return Ok(()),
                };
            }
        }
        if let Some((one, two)) = condition {
            query = match query.clone().filter(&format!("{one} >= {two}")) {
                Ok(query) => query,
                Err(_) => return Ok(()),
            };
        }
        let want = answer(&query, None, text.as_bytes(), block);
        for level in Level::available() {
            prop_assert_eq!(&answer(&query, Some(level), text.as_bytes(), block), &want);
        }
    }
}

/// What quotients and cuts are is counted by whole numbers, over values of each size and sign.
#[test]
fn quotients_are_rounded_once() {
    let mut number = 1_u64;
    let mut draw = |bits: u32| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let magnitude = (number >> (64 - 1 - number % u64::from(bits)) >> 1) as i128;
        if number >> 40 & 1 == 1 {
            -magnitude
        } else {
            magnitude
        }
    };
    // Half away from zero.
    let rounded = |dividend: i128, divisor: i128| {
        let twice = 2 * dividend.abs() + divisor.abs();
        twice / (2 * divisor.abs()) * dividend.signum() * divisor.signum()
    };
    let text = |units: i128, digits: usize| {
        let magnitude = format!("{:0>width$}", units.abs(), width = digits + 1);
        let (whole, decimals) = magnitude.split_at(magnitude.len() - digits);
        let point = if digits > 0 { "." } else { "" };
        format!(
            "{}{whole}{point}{decimals}",
            if units < 0 { "-" } else { "" }
        )
    };
    let (mut rows, mut sums) = (String::new(), [0_i128; 5]);
    for _ in 0..20_000 {
        let (dividend, divisor) = (draw(40), draw(20));
        let divisor = if divisor == 0 { 7 } else { divisor };
        rows += &format!("{},{}\n", text(dividend, 2), text(divisor, 1));
        let ten = |exponent: u32| 10_i128.pow(exponent);
        let magnitude = |digits: u32| (dividend * ten(digits) / (divisor * 10)).abs();
        // A digit more for each zero after the point, of which no quotient here has more than eight.
        let zeros = (0..).find(|&zeros| dividend == 0 || magnitude(zeros + 1) > 0);
        let digits = 12 + zeros.unwrap();
        sums[0] += rounded(dividend * ten(digits), divisor * 10) * ten(24 - digits);
        sums[1] += rounded(dividend * 100, divisor * 10);
        sums[2] += rounded(dividend, 10);
        sums[3] += dividend.div_euclid(100);
        sums[4] += rounded(dividend, 1000) * 10;
    }
    let items = [
        "sum($1 / $2)",
        "sum(round($1 / $2, 2))",
        "sum(round($1, 1))",
        "sum(floor($1))",
        "sum(round($1, -1))",
    ];
    let query = items.iter().fold(Query::new(b','), |query, item| {
        query.aggregate_text(item).unwrap()
    });
    let shortest = text(sums[0], 24);
    let want = [
        shortest.trim_end_matches('0').to_string(),
        text(sums[1], 2),
        text(sums[2], 1),
        text(sums[3], 0),
        text(sums[4], 0),
    ];
    for level in std::iter::once(None).chain(Level::available().into_iter().map(Some)) {
        let got = answer(&query, level, rows.as_bytes(), 100_000);
        assert_eq!(got.lines().nth(1), Some(&*want.join(",")), "{level:?}");
    }
}

/// Rows are taken out twice before a condition: for doubled quotes, and where nothing can be computed.
#[test]
fn rows_taken_out_twice() {
    let text = b"1,0,5\na,0,6\n\"\"\"\",0,7\n2,0,66\n";
    for condition in ["$1 / 4 > 0.3", "$1 * 2 > 3"] {
        let query = Query::new(b',').quote(Some(b'"')).filter(condition);
        let query = query.unwrap().aggregate_text("sum($3)").unwrap();
        let query = query.aggregate_text("sum(length($3))").unwrap();
        for level in std::iter::once(None).chain(Level::available().into_iter().map(Some)) {
            let got = answer(&query, level, text, 100);
            assert!(got.starts_with("sum_3,sum(length($3))\n66,2\n"), "{got}");
        }
    }
}

/// A number that is computed once, for the condition and for what is computed of the rows that it takes.
#[test]
fn a_computed_number_tested_twice() {
    let text = b"1,10,100\n2,20,200\n3,30,300\n1,40,400\n5,50,500\n";
    let query = Query::new(b',').filter("$1 * 2 > 3").unwrap();
    let query = query.aggregate_text("sum(if($1 * 2 > 5, $2, $3))").unwrap();
    for level in std::iter::once(None).chain(Level::available().into_iter().map(Some)) {
        let got = answer(&query, level, text, 1000);
        assert!(got.contains("\n280\n3 "), "{got}");
    }
}

/// Where the texts of a window's rows have no room, single records are added.
#[test]
fn computed_texts_longer_than_their_room() {
    let text = "a\nbc\n\nd\n".repeat(4000);
    for length in [1, 7, 40, 400] {
        let long = "x".repeat(length);
        for item in [
            format!("concat($1, '{long}')"),
            format!("upper($1 || '{long}')"),
        ] {
            let query = Query::new(b',').key_text(&item).unwrap();
            let query = query.aggregate_text(&format!("lexmax({item})")).unwrap();
            let want = answer(&query, None, text.as_bytes(), 100_000);
            for level in Level::available() {
                let got = answer(&query, Some(level), text.as_bytes(), 100_000);
                assert_eq!(got, want, "{item}");
            }
        }
    }
}
