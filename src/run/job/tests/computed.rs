//! Values that are computed, in the passes and record by record.

use super::*;

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
