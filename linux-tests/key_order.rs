//! The order of an answer's rows by key: as numbers where all keys of a column are numbers, in every way that an answer
//! comes about.

use std::path::Path;

use crate::support::{dir, end, ringfold, write};

fn printed(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(args.iter().copied()).current_dir(dir));
    String::from_utf8(ended.answer_and_notices().0).unwrap()
}

/// The rows without the names of the columns.
fn rows(csv: &str) -> Vec<&str> {
    csv.lines().skip(1).collect()
}

const MONTHS: &str = "month,city,n
10,Bern,1
2,Bern,2
1,Oslo,3
12,Bern,4
11,Oslo,5
2,Bern,6
,Bern,7
01,Bern,8
1.0,Bern,9
-3,Bern,10
2e1,Rom,11
";

const BY_NUMBER: [&str; 10] = [
    "\"\",1", "-3,1", "01,1", "1,1", "1.0,1", "2,2", "10,1", "11,1", "12,1", "2e1,1",
];

#[test]
fn keys_that_are_all_numbers_stand_in_their_order() {
    let dir = dir();
    write(dir.path(), "m.csv", MONTHS.as_bytes());
    write(
        dir.path(),
        "mixed.csv",
        format!("{MONTHS}n/a,Bern,1\n").as_bytes(),
    );
    let ask = |file: &str, more: &[&str]| {
        let args = [&["aggregate", "-H", "-k", "month"], more, &[file]].concat();
        printed(dir.path(), &args)
    };
    assert_eq!(rows(&ask("m.csv", &[])), BY_NUMBER);
    assert_eq!(rows(&ask("m.csv", &["--sort", "month"])), BY_NUMBER);
    assert_eq!(rows(&ask("m.csv", &["--top", "4"])), BY_NUMBER[..4]);
    let mut backwards = BY_NUMBER.map(String::from);
    backwards.reverse();
    // Numbers that are the same stand in the order of their bytes.
    backwards[5..8].reverse();
    assert_eq!(rows(&ask("m.csv", &["--sort", "month:desc"])), backwards);
    let by_count = [
        "2,2", "\"\",1", "-3,1", "01,1", "1,1", "1.0,1", "10,1", "11,1", "12,1", "2e1,1",
    ];
    assert_eq!(rows(&ask("m.csv", &["--sort", "count:desc"])), by_count);
    // One other text, and all go by their bytes; unless no row of the answer has it.
    let by_bytes = [
        "\"\",1", "-3,1", "01,1", "1,1", "1.0,1", "10,1", "11,1", "12,1", "2,2", "2e1,1", "n/a,1",
    ];
    assert_eq!(rows(&ask("mixed.csv", &[])), by_bytes);
    assert_eq!(rows(&ask("mixed.csv", &["--sort", "month"])), by_bytes);
    let having = ask("mixed.csv", &["--having", "month != 'n/a'"]);
    assert_eq!(rows(&having), BY_NUMBER[1..]);
    let json = ask("m.csv", &["-f", "ndjson", "--top", "6"]);
    let last = json.lines().last();
    assert_eq!(last, Some("{\"month\":\"2\",\"count\":2}"));
    // Each column by itself.
    let both = printed(
        dir.path(),
        &[
            "aggregate",
            "-H",
            "-k",
            "city,month",
            "--where",
            "n < 7",
            "m.csv",
        ],
    );
    assert_eq!(
        rows(&both),
        [
            "Bern,2,2",
            "Bern,10,1",
            "Bern,12,1",
            "Oslo,1,1",
            "Oslo,11,1"
        ]
    );
}

#[test]
fn a_decimal_comma_is_one_in_keys() {
    let dir = dir();
    write(dir.path(), "c.txt", b"10;1\n2,5;1\n2,25;1\n-1,5;1\n");
    let asked = ["aggregate", "-d;", "--decimal-comma", "-k", "1", "c.txt"];
    let want = ["\"-1,5\",1", "\"2,25\",1", "\"2,5\",1", "10,1"];
    assert_eq!(rows(&printed(dir.path(), &asked)), want);
    printed(
        dir.path(),
        &[&asked[..], &["--save-partial", "c.part"]].concat(),
    );
    assert_eq!(rows(&printed(dir.path(), &["merge", "c.part"])), want);
    // What is computed has a point.
    let bins = ["-k", "bin($1, 2.5) as b", "--fill", "b", "c.txt"];
    let asked = [&["aggregate", "-d;", "--decimal-comma"], &bins[..]].concat();
    let want = ["-2.5,1", "0,1", "2.5,1", "5,0", "7.5,0", "10,1"];
    assert_eq!(rows(&printed(dir.path(), &asked)), want);
}

/// Merges, continued states and answers that outgrew the memory, by any of its keys.
#[test]
fn the_order_is_the_same_in_merges_and_in_files() {
    let dir = dir();
    let row = |n: u64| format!("{},{}\n", n * 7919 % 20_011, n % 5);
    let text: String = (0..40_000).map(row).collect();
    let path = write(dir.path(), "n.txt", text.as_bytes());
    write(dir.path(), "text.txt", format!("{text}x,1\n").as_bytes());
    let ask = |more: &[&str]| {
        let asked = [
            "aggregate",
            "-d,",
            "--single-line",
            "-k",
            "1",
            "-a",
            "count,sum:2",
        ];
        printed(dir.path(), &[&asked[..], more].concat())
    };
    let file = path.to_str().unwrap();
    let want = ask(&[file]);
    let keys = rows(&want)
        .into_iter()
        .map(|row| row.split(',').next().unwrap().parse::<u64>().unwrap());
    assert!(keys.eq(0..20_011));
    for part in ["1/3", "2/3", "3/3"] {
        let name = format!("{}.part", &part[..1]);
        ask(&["--range", part, "--save-partial", &name, file]);
    }
    let merge = |more: &[&str]| {
        printed(
            dir.path(),
            &[&["merge", "1.part", "2.part", "3.part"], more].concat(),
        )
    };
    assert!(merge(&[]) == want);
    let small = ["--memory", "1", "--spill-dir", "."];
    for more in [
        &[][..],
        &["--sort", "key1:desc"],
        &["--sort", "sum_2:desc,key1", "--top", "3000"],
        &["--sort", "sum_2:desc"],
        &["--having", "sum_2 > 4"],
        &["--top", "10"],
    ] {
        let want = ask(&[&[file], more].concat());
        assert!(merge(more) == want, "{more:?}");
        assert!(merge(&[more, &small].concat()) == want, "{more:?}");
        let outgrown = end(
            ringfold(["aggregate", "-d,", "-k", "1", "-a", "count,sum:2", file])
                .args(more)
                .args(small)
                .current_dir(dir.path()),
        );
        let (outgrown, notice) = outgrown.answer_and_notices();
        assert!(notice.contains("outgrew the memory"), "{notice}");
        assert!(outgrown == want.as_bytes(), "{more:?}");
    }
    // With one other text by bytes, from files too.
    let want = ask(&["text.txt"]);
    assert!(want.starts_with("key1,count,sum_2\n0,2,"));
    assert_eq!(rows(&want)[2].split(',').next(), Some("10"));
    let small = end(ringfold([
        "aggregate",
        "-d,",
        "-k",
        "1",
        "-a",
        "count,sum:2",
        "text.txt",
    ])
    .args(small)
    .current_dir(dir.path()));
    assert!(small.answer_and_notices().0 == want.as_bytes());
}
