//! `ringfold describe`: columns beside a naive reference, in every way of reading, and a command that goes on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use crate::support::{cached_ways, dir, end, end_of, feed, ringfold, start, write};

/// Numbers that look like random ones.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// Records of a number, a city, a price in cents of which some aren't there and three are texts, and a day.
fn records(count: u64) -> Vec<[String; 4]> {
    let mut draw = Draw(7);
    let record = |at: u64| {
        let price = match (at, draw.below(10)) {
            (100 | 301 | 333, _) => "n/a".into(),
            (_, 0) => String::new(),
            _ => format!("{}.{:02}", draw.below(400), draw.below(100)),
        };
        let city = ["Bern", "Oslo", "Rome", "Zürich"][draw.below(4) as usize];
        let day = format!("2026-{:02}-{:02}", 1 + draw.below(12), 1 + draw.below(28));
        [at.to_string(), city.into(), price, day]
    };
    (0..count).map(record).collect()
}

fn text_of(records: &[[String; 4]]) -> String {
    let mut text = "id,city,price,day\n".to_string();
    for record in records {
        writeln!(text, "{}", record.join(",")).unwrap();
    }
    text
}

/// A number with more digits than any percentile of cents has.
fn quantile(sorted: &[i64], quarter: usize) -> f64 {
    let place = (sorted.len() - 1) * quarter;
    let (low, rest) = (sorted[place / 4], place % 4);
    let high = sorted[(place / 4 + 1).min(sorted.len() - 1)];
    (low * (4 - rest as i64) + high * rest as i64) as f64 / 400.0
}

/// What a description's CSV must have: nulls, others, different values, least, greatest, and the most frequent one.
fn row_of(
    values: &[&str],
    is_other: impl Fn(&str) -> bool,
    order: impl Fn(&str) -> i64,
) -> [String; 6] {
    let known = || values.iter().filter(|value| !value.is_empty());
    let mut counts = BTreeMap::<&str, u64>::new();
    known().for_each(|value| *counts.entry(value).or_default() += 1);
    let mut most: Vec<_> = counts.iter().collect();
    most.sort_by_key(|(value, count)| (u64::MAX - **count, **value));
    let own = || known().filter(|value| !is_other(value));
    let least = own().min_by_key(|value| (order(value), value.to_string()));
    let greatest = own().max_by_key(|value| (order(value), value.to_string()));
    [
        (values.len() - known().count()).to_string(),
        (known().count() - own().count()).to_string(),
        counts.len().to_string(),
        least.unwrap().to_string(),
        greatest.unwrap().to_string(),
        format!("{},{}", most[0].0, most[0].1),
    ]
}

#[test]
fn columns_are_those_of_a_naive_reference() {
    let dir = dir();
    let records = records(1500);
    write(dir.path(), "r.csv", text_of(&records).as_bytes());
    let described = |flags: &[&str]| {
        let args = [&["describe", "-q", "-f", "csv", "r.csv"], flags].concat();
        String::from_utf8(end(ringfold(args).current_dir(dir.path())).answer()).unwrap()
    };
    let csv = described(&[]);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0][..9].join(","),
        "column,name,type,nulls,other,distinct,least,greatest,mean"
    );
    let cents = |value: &str| value.replace('.', "").parse::<i64>().unwrap();
    for (at, name, kind) in [
        (0, "id", "integer"),
        (1, "city", "text"),
        (2, "price", "decimal"),
        (3, "day", "time"),
    ] {
        let values: Vec<&str> = records.iter().map(|record| &*record[at]).collect();
        let is_other = |value: &str| at == 2 && value == "n/a";
        let order = |value: &str| {
            if [0, 2].contains(&at) {
                cents(value)
            } else {
                0
            }
        };
        let row = &rows[at + 1];
        let [nulls, others, distinct, least, greatest, top] = row_of(&values, is_other, order);
        assert_eq!(row[1..3], [name, kind]);
        assert_eq!(
            row[3..8],
            [&*nulls, &others, &distinct, &least, &greatest],
            "{name}"
        );
        assert_eq!(row[12..14].join(","), top, "{name}");
        assert_eq!(row[8].is_empty(), [1, 3].contains(&at), "{name}");
        if ![0, 2].contains(&at) {
            continue;
        }
        let numbers = values
            .iter()
            .filter(|value| !value.is_empty() && !is_other(value));
        let mut numbers: Vec<i64> = numbers
            .map(|value| cents(value) * if at == 0 { 100 } else { 1 })
            .collect();
        numbers.sort_unstable();
        let mean = numbers.iter().sum::<i64>() as f64 / 100.0 / numbers.len() as f64;
        let number = |column: usize| row[column].parse::<f64>().unwrap();
        assert!((number(8) - mean).abs() < 1e-3, "{} {mean}", row[8]);
        // More than 512 numbers are different.
        for (quarter, column) in [(1, 9), (2, 10), (3, 11)] {
            let want = quantile(&numbers, quarter);
            assert!(
                (number(column) - want).abs() <= 0.008 * want + 0.01,
                "{} {want}",
                row[column]
            );
        }
        let parts: Vec<u64> = row[18]
            .split(' ')
            .map(|part| part.parse().unwrap())
            .collect();
        assert_eq!(
            (parts.len(), parts.iter().sum::<u64>()),
            (8, numbers.len() as u64)
        );
        assert_eq!(row[19], "p25 median p75 histogram");
    }
    // The same bytes whatever reads them, and with how much memory.
    for way in cached_ways() {
        for (block, threads) in [("64", "1"), ("512", "4")] {
            let flags = [&way.flags()[..], &["-b", block, "-j", threads]].concat();
            assert_eq!(described(&flags), csv, "{flags:?}");
        }
    }
    assert_eq!(described(&["--memory", "1K", "-b", "512", "-j", "4"]), csv);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text_of(&records).as_bytes()).unwrap();
    write(dir.path(), "r.csv", &gzip.finish().unwrap());
    assert_eq!(described(&[]), csv);
    let mut pipe = start(ringfold(["describe", "-q"]).stdin(std::process::Stdio::piped()));
    feed(&mut pipe, text_of(&records).into_bytes());
    assert_eq!(String::from_utf8(end_of(pipe).answer()).unwrap(), csv);
}

/// What is another kind, an estimate or not looked at is told with its place.
#[test]
fn what_is_not_as_it_seems_is_told() {
    let dir = dir();
    write(dir.path(), "r.csv", text_of(&records(3000)).as_bytes());
    let args = ["describe", "-f", "ndjson", "r.csv"];
    let (answer, said) = end(ringfold(args).current_dir(dir.path())).answer_and_notices();
    let answer = String::from_utf8(answer).unwrap();
    let place = "column `price`: 3 values aren't numbers, the first at r.csv byte ";
    assert!(
        said.contains(place)
            && said.contains(" line 102: `n/a`: `--null-value n/a` takes it for no value"),
        "{said}"
    );
    assert!(
        said.contains("distinct values within 2% in 95 of 100 cases"),
        "{said}"
    );
    let id = answer.lines().next().unwrap();
    assert!(
        id.contains("\"estimates\":\"distinct p25 median p75 histogram\""),
        "{id}"
    );
    assert!(id.contains("\"top1\":null"), "{id}");
    let nulls = ["describe", "-f", "ndjson", "--null-value", "n/a", "r.csv"];
    let (answer, said) = end(ringfold(nulls).current_dir(dir.path())).answer_and_notices();
    let price = String::from_utf8(answer).unwrap();
    assert!(
        price.lines().nth(2).unwrap().contains("\"other\":0"),
        "{price}"
    );
    assert!(!said.contains("aren't numbers"), "{said}");
    // Numbers among texts are texts.
    write(dir.path(), "m.csv", b"house\n7b\n10\n9a\nx\n100\n7b\n");
    let (answer, said) =
        end(ringfold(["describe", "-H", "m.csv"]).current_dir(dir.path())).answer_and_notices();
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.contains("\n1,house,text,0,0,5,10,x,,,,,7b,2,10,1,100,1,"),
        "{answer}"
    );
    assert!(!said.contains("other"), "{said}");
    let mut lines = "{\"a\":1}\n".repeat(999);
    lines += "{\"b\":{\"c\":2}}\n{\"late\":3}\n";
    write(dir.path(), "e.jsonl", lines.as_bytes());
    let (answer, said) =
        end(ringfold(["describe", "e.jsonl"]).current_dir(dir.path())).answer_and_notices();
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.contains("\n2,b.c,integer,1000,0,1,2,2,") && !answer.contains("late"),
        "{answer}"
    );
    assert!(
        said.contains("the 2 columns are keys of the first 1,000 records"),
        "{said}"
    );
    let error = end(ringfold(["describe", "--on-error", "null", "r.csv"]).current_dir(dir.path()))
        .failure(2);
    assert!(error.contains("--on-error null"), "{error}");
    write(dir.path(), "b.csv", b"a,b\n1,2\n3\n4,5\n");
    let error = end(ringfold(["describe", "--on-error", "fail", "b.csv"]).current_dir(dir.path()))
        .failure(1);
    assert!(error.contains("(line 3)"), "{error}");
}

/// The last line on stderr is a command that works as it stands.
#[test]
fn the_next_command_works() {
    let dir = dir();
    let files: [(&str, &[u8]); 10] = [
        ("mixed.csv", b"city,price\nBern,1\nOslo,n/a\nBern,3\n"),
        ("short.csv", b"city,price\nBern,1\nOslo\nBern,3\n"),
        ("it's one.csv", b"unit price,city\n1,Bern\n2,Oslo\n3,Bern\n"),
        ("comma.txt", b"city;price\nBern;1,5\nOslo;2,25\nBern;3,5\n"),
        ("notes.tsv", b"# made by a machine\ncity\tprice\nBern\t1\nOslo\t2\nBern\t2\n"),
        ("e.jsonl", b"{\"a\":\"x\",\"b\":{\"c\":1}}\n{\"a\":\"x\"}\n{\"a\":\"y\",\"b\":{\"c\":2}}\n"),
        ("access.log", b"203.0.113.9 - - [25/Nov/2026:13:45:10 +0000] \"GET /a?q=1 HTTP/1.1\" 200 512 \"-\" \"curl/8\"\n"),
        ("lines", b"one line\nanother, longer line\nthe third\n"),
        ("odd.csv", b"\"a,b\",\"a,b\",x\n\"1\",2,z\n3,4,z\n"),
        ("numbers.csv", b"1,2,3\n4,5,6\n1,8,9\n"),
    ];
    let program = crate::support::program();
    let program = program.parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for (name, bytes) in files {
        write(dir.path(), name, bytes);
        for flags in [
            &["-f", "json"][..],
            &["-fmarkdown", "--output=out"],
            &["--ascii", "-f", "table", "-j1"],
        ] {
            let args = [&["describe"], flags, &[name]].concat();
            let (_, said) = end(ringfold(args).current_dir(dir.path())).answer_and_notices();
            let last = said.lines().last().unwrap_or_default();
            let next = last
                .strip_prefix("ringfold: go on with: ")
                .unwrap_or_else(|| panic!("{name}: {said}"));
            let mut shell = Command::new("sh");
            shell
                .args(["-c", next])
                .env("PATH", &path)
                .current_dir(dir.path());
            let (answer, _) = end(&mut shell).answer_and_notices();
            assert!(answer.split(|byte| *byte == b'\n').count() >= 3, "{next}");
        }
    }
    assert!(
        !end(ringfold(["describe", "-q", "mixed.csv"]).current_dir(dir.path()))
            .stderr
            .contains("go on")
    );
}
