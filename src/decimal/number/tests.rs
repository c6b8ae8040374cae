//! The grammar, its limits, and arithmetic against big integers.

use proptest::prelude::*;

use super::exact::Mantissa;
use super::*;

#[test]
fn the_grammar() {
    for (text, want) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.00", "0.00"),
        ("+1", "1"),
        ("5.", "5"),
        (".5", "0.5"),
        ("-.50", "-0.50"),
        (" \t12.5 ", "12.5"),
        ("00012", "12"),
        (
            "99999999999999999999999999999999999999",
            "99999999999999999999999999999999999999",
        ),
        (
            "-0.00000000000000000000000000000000000001",
            "-0.00000000000000000000000000000000000001",
        ),
        (
            "123456789012345678901234567890123456.123456789012345678901234567890123456",
            "123456789012345678901234567890123456.123456789012345678901234567890123456",
        ),
        (
            "-00100000000000000000000000000000000000.0000000000000000000000000000000000010",
            "-100000000000000000000000000000000000.000000000000000000000000000000000001",
        ),
        ("1e3", "1000"),
        ("-1.5E+2", "-150"),
        ("1.2e-9", "0.0000000012"),
        ("1e37", "10000000000000000000000000000000000000"),
        ("0e999999999999", "0"),
        // Zeros past the limit.
        (
            "0.1000000000000000000000000000000000000000000000",
            "0.10000000000000000000000000000000000000",
        ),
        (
            "-0.0010000000000000000000000000000000000000000000",
            "-0.00100000000000000000000000000000000000",
        ),
        (
            "0.000000000000000000000000000000000000000",
            "0.00000000000000000000000000000000000000",
        ),
    ] {
        let number = Number::read(text.as_bytes()).unwrap();
        assert_eq!(number.exact().text(), want, "{text}");
    }
    for text in [
        "", " ", "-", "+", ".", "-.", "1.2.3", "1,5", "--1", "+-1", "1 2", "0x1", "nan", "٣", "1e",
        "e3",
    ] {
        let error = Number::read(text.as_bytes()).unwrap_err();
        assert_eq!(error, format!("`{text}` is not a number"));
    }
    for text in [
        "100000000000000000000000000000000000000",
        "0.000000000000000000000000000000000000001",
        "123456789012345678901234567890123456789012345678901234567890",
        "1e38",
        "1e-39",
        "12e-38e",
    ] {
        let error = Number::read(text.as_bytes()).unwrap_err();
        let is_right = match text.ends_with('e') {
            true => error.ends_with("is not a number"),
            false => error.ends_with("which is the limit"),
        };
        assert!(is_right, "{error}");
    }
}

const FLOAT: Grammar = Grammar::FLOAT;

#[test]
fn the_grammar_of_floats() {
    for (text, want) in [
        ("1e3", "1000"),
        ("-1.5E+2", "-150"),
        ("2.50e-3", "0.00250"),
        ("1e-5", "0.00001"),
        ("0e999999999999", "0"),
        ("+inf", "inf"),
        ("-Infinity", "-inf"),
        (" NaN ", "nan"),
        ("-nan", "nan"),
        ("1e39", "1000000000000000000000000000000000000000"),
        (
            "1000000000000000000000000000000000000000",
            "1000000000000000000000000000000000000000",
        ),
    ] {
        let number = Number::read_as(text.as_bytes(), FLOAT).unwrap();
        assert_eq!(number.exact().text(), want, "{text}");
    }
    for text in [
        "e3", "1e", "1e+", "1e1.5", "1 e3", "in", "infinite", "+-inf", "1e3e3",
    ] {
        let error = Number::read_as(text.as_bytes(), FLOAT).unwrap_err();
        assert_eq!(error, format!("`{text}` is not a number"));
    }
    for text in ["1e401", "1e-401", "-1e99999999999999999999"] {
        let error = Number::read_as(text.as_bytes(), FLOAT).unwrap_err();
        let why = format!("the exponent of `{text}` is past the limit of 400 digits");
        assert_eq!(error, why);
    }
}

#[test]
fn special_values() {
    let number = |text: &str| Number::read_as(text.as_bytes(), FLOAT).unwrap();
    let sum = |texts: &[&str]| {
        let mut sum = Exact::default();
        texts.iter().for_each(|text| sum.add(number(text)));
        sum
    };
    for (texts, want) in [
        (&["1", "inf", "2"][..], "inf"),
        (&["-inf", "1e300"], "-inf"),
        (&["inf", "-inf"], "nan"),
        (&["nan", "inf", "1"], "nan"),
    ] {
        assert_eq!(sum(texts).text(), want);
        let backwards: Vec<_> = texts.iter().rev().copied().collect();
        assert_eq!(sum(&backwards).text(), want);
    }
    let ordered = [
        "-inf", "-1e50", "-1", "0", "1e-300", "1e-299", "1", "1e38", "1e50", "inf", "nan",
    ];
    for (at, one) in ordered.iter().enumerate() {
        for (other_at, other) in ordered.iter().enumerate() {
            let (one, other) = (number(one), number(other));
            assert_eq!(one.cmp(&other), at.cmp(&other_at));
            assert_eq!(one.exact().cmp(&other.exact()), at.cmp(&other_at));
        }
    }
}

fn number() -> impl Strategy<Value = Number> {
    let most = 10_i128.pow(38) - 1;
    let mantissa = prop_oneof![-most..=most, -1000..1000_i128];
    (mantissa, 0..=38_u32).prop_map(|(mantissa, scale)| Number::new(mantissa, scale))
}

proptest! {
    /// Against big integers at the greatest scale, in one order and split in two.
    #[test]
    fn sums_are_exact(numbers in prop::collection::vec(number(), 0..20), cut in 0..20_usize) {
        let big = |n: &Number| BigInt::from(n.mantissa) * BigInt::from(10).pow(38 - n.decimals());
        let want = Exact::new(numbers.iter().map(big).sum(), 38);
        let (mut all, mut halves) = (Exact::default(), [Exact::default(), Exact::default()]);
        for (at, number) in numbers.iter().enumerate() {
            all.add(*number);
            halves[usize::from(at < cut)].add(*number);
        }
        let [mut one, two] = halves;
        one.add_exact(&two);
        prop_assert_eq!(all.with_scale(38).text(), want.text());
        prop_assert_eq!(one.with_scale(38).text(), want.text());
        let squares = numbers.iter().map(|n| big(n) * big(n)).sum::<BigInt>();
        let mut square = Exact::default();
        for number in &numbers {
            square.add_square(*number);
        }
        prop_assert_eq!(square.with_scale(76).text(), Exact::new(squares, 76).text());
    }

    /// A float's value is the decimal's that it is written as, so its double is that of the standard library.
    #[test]
    fn floats_are_read_as_the_standard_library_does(value: f64) {
        for text in [format!("{value}"), format!("{value:e}"), format!("{value:?}")] {
            let Ok(number) = Number::read_as(text.as_bytes(), FLOAT) else {
                // Without an exponent, doubles may have hundreds of digits.
                prop_assert!(text.len() > DIGITS_MAX);
                continue;
            };
            let nearest = number.exact().nearest();
            prop_assert_eq!(number.nearest().to_bits(), (nearest + 0.0).to_bits());
            prop_assert!(nearest == value || nearest.is_nan() && value.is_nan(), "{}", text);
        }
    }

    #[test]
    fn texts_are_those_of_big_integers(mantissa: i128, short in -1000..1000_i128, scale in 0..=38_u32) {
        for mantissa in [mantissa, short, mantissa >> 64] {
            let mantissa = Mantissa::Big(Box::new(BigInt::from(mantissa)));
            let big = Exact { mantissa, scale };
            let small = Exact::new(big.mantissa.big(), scale);
            prop_assert_eq!(small.text(), big.text());
        }
    }

    #[test]
    fn order_is_by_value(one in number(), two in number()) {
        let big = |n: Number| BigInt::from(n.mantissa) * BigInt::from(10).pow(38 - n.decimals());
        prop_assert_eq!(one.cmp(&two), big(one).cmp(&big(two)));
        prop_assert_eq!(one.exact().cmp(&two.exact()), big(one).cmp(&big(two)));
    }
}
