//! What is asked of an answer beside its columns: digits, names, order.

use std::path::Path;

use crate::support::{dir, end, ringfold, write};

fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    String::from_utf8(ended.answer()).unwrap()
}

#[test]
fn digits_names_and_order() {
    let dir = dir();
    let orders = b"city,price,note\nBern,1.50,\"a, b\"\nOslo,20,\nBern,2.25,z\nBern,,\nRom,0.5,z\n";
    write(dir.path(), "o.csv", orders);
    for (args, want) in [
        // Order by several columns, names quoted or not.
        (
            &["-k", "city", "--sort", "count:desc,\"city\":desc"][..],
            "city,count\nBern,3\nRom,1\nOslo,1\n",
        ),
        (
            &["-k", "city", "-k", "note", "--sort", "note:desc,city"],
            "city,note,count\nBern,z,1\nRom,z,1\nBern,\"a, b\",1\nBern,\"\",1\nOslo,\"\",1\n",
        ),
        (
            &[
                "-k",
                "city",
                "-a",
                "mean:price",
                "--as",
                "\"a,b\",key",
                "--sort",
                "\"key\"",
            ],
            "\"a,b\",key\nRom,0.5000\nBern,1.8750\nOslo,20.0000\n",
        ),
        // Digits of all computed numbers, but not of counts and texts.
        (
            &[
                "-k",
                "city",
                "-a",
                "count,sum:price,mean:price,first:price,stddev:price",
                "--precision",
                "1",
            ],
            "city,count,sum_price,mean_price,first_price,stddev_price\n\
             Bern,3,3.8,1.9,1.50,0.5\nOslo,1,20.0,20.0,20,\nRom,1,0.5,0.5,0.5,\n",
        ),
        (
            &["-a", "sum:price,max:price", "--precision", "4"],
            "sum_price,max_price\n24.2500,20.0000\n",
        ),
        (
            &["-a", "range:price", "--precision", "0"],
            "range_price\n20\n",
        ),
    ] {
        let args = [&["-H", "o.csv"], args].concat();
        assert_eq!(printed(dir.path(), &args), want, "{args:?}");
    }
}

/// Means of 151/101 and 3/2, which two digits round to 1.50.
pub fn means(dir: &Path) {
    let text = format!(
        "a,1\n{}{}b,1\nb,2\n",
        "a,1\n".repeat(50),
        "a,2\n".repeat(50)
    );
    write(dir, "n.csv", text.as_bytes());
}

#[test]
fn numbers_are_rounded_once_and_sorted_before() {
    let dir = dir();
    means(dir.path());
    let with = |more: &[&str]| {
        let asked = ["-k", "1", "-a", "mean:2", "n.csv"];
        printed(dir.path(), &[&asked[..], more].concat())
    };
    assert_eq!(with(&[]), "key1,mean_2\na,1.50\nb,1.50\n");
    for (digits, want) in [
        ("0", "key1,mean_2\na,1\nb,2\n"),
        ("3", "key1,mean_2\na,1.495\nb,1.500\n"),
    ] {
        assert_eq!(with(&["--precision", digits]), want);
    }
    assert_eq!(
        with(&["--sort", "mean_2:desc"]),
        "key1,mean_2\nb,1.50\na,1.50\n"
    );
}

#[test]
fn what_is_refused() {
    let dir = dir();
    write(dir.path(), "a.csv", b"city,price\nBern,1\n");
    write(dir.path(), "rows", b"a;1\n");
    for (args, words) in [
        (
            &["-k", "1", "a.csv", "--as", "a"][..],
            "1 name for 2 columns of the answer: key1, count",
        ),
        (
            &["-k", "1", "a.csv", "--as", "a,a"],
            "two columns of the answer would be called `a`",
        ),
        (
            &["-k", "1", "a.csv", "--as", "a,"],
            "a column's name is missing",
        ),
        (
            &["-k", "1", "a.csv", "--precision", "101"],
            "--precision 101 is out of range: 0 to 100",
        ),
        (
            &["-k", "1", "a.csv", "--sort", "count,town"],
            "no column is called `town`",
        ),
        (
            &["--precision", "1", "rows"],
            "--precision has no effect on this format",
        ),
        (&["--as", "a", "rows"], "--as has no effect on this format"),
    ] {
        let error = end(ringfold(["aggregate"]).args(args).current_dir(dir.path())).failure(2);
        assert!(error.contains(words), "{args:?}: {error}");
    }
}

/// A mean, a variance or a value between two has three significant digits at least, in each row as many as it needs.
#[test]
fn small_means_have_three_significant_digits() {
    let dir = dir();
    let mut text = "shop,converted\n".to_string();
    for (shop, ones, rows) in [("a", 2, 2000), ("b", 4, 1000), ("c", 0, 10), ("d", 7, 2)] {
        let value = |row: usize| {
            if shop == "d" {
                7
            } else {
                usize::from(row < ones)
            }
        };
        text.extend((0..rows).map(|row| format!("{shop},{}\n", value(row))));
    }
    write(dir.path(), "r.csv", text.as_bytes());
    let asked = [
        "-H",
        "-k",
        "shop",
        "-a",
        "mean:converted,var_pop:converted,stddev_pop:converted,p99.9:converted",
        "r.csv",
    ];
    let with = |more: &[&str]| printed(dir.path(), &[&asked[..], more].concat());
    let names = "shop,mean_converted,var_pop_converted,stddev_pop_converted,p99.9_converted\n";
    let a = "a,0.00100,0.000999,0.031607,0.00100\n";
    let rest = "b,0.00400,0.003984,0.063119,1.00\nc,0.00,0.000000,0.000000,0.00\n\
                d,7.00,0.000000,0.000000,7.00\n";
    assert_eq!(with(&[]), format!("{names}{a}{rest}"));
    assert_eq!(
        with(&["--having", "mean_converted = '0.00100'"]),
        format!("{names}{a}")
    );
    assert_eq!(
        with(&["--precision", "2", "--top", "1"]),
        format!("{names}a,0.00,0.00,0.03,0.00\n")
    );
    // A partial's answer has the same digits as the row that a run prints.
    let saved = ["--save-partial", "r.part"];
    end(ringfold(["aggregate"])
        .args(asked)
        .args(saved)
        .current_dir(dir.path()))
    .answer();
    let merged = end(ringfold(["merge", "r.part"]).current_dir(dir.path())).answer();
    assert_eq!(
        String::from_utf8(merged).unwrap(),
        format!("{names}{a}{rest}")
    );
}
