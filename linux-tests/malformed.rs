//! Malformed records: one line that says where and why, the same by every engine; or skipped, and
//! nothing else with them.

use std::process::Stdio;

use crate::reference::{self, Style};
use crate::support::{
    STATIONS, WAYS, cached_ways, dir, end, end_of, feed, ringfold, start, str, write,
};

/// Each kind, and the words for it.
const KINDS: [(&[u8], &str); 18] = [
    (b"a", "1 field where 2 are expected"),
    (b"\0", "1 field where 2 are expected"),
    (b" ", "1 field where 2 are expected"),
    (
        b"no separator, though it is long",
        "1 field where 2 are expected",
    ),
    (b"a;1.0;2.0", "3 fields where 2 are expected"),
    (b";;;;", "5 fields where 2 are expected"),
    (b"a;1.0;", "3 fields where 2 are expected"),
    (b"a;", "`` is not a number"),
    (b";", "`` is not a number"),
    (b"a;x", "`x` is not a number"),
    (b"a;-", "`-` is not a number"),
    (b"a;--5.0", "`--5.0` is not a number"),
    (b"a;1,0", "`1,0` is not a number"),
    (b"a;1.0.0", "`1.0.0` is not a number"),
    (b"a;NaN", "`NaN` is not a number"),
    (b"a;1.0\r", "`1.0\\r` is not a number"),
    (b"a;1\x1b[31m.0", "`1\\x1b[31m.0` is not a number"),
    (
        b"a;12345678901234567890123456789012345678.5",
        "`12345678901234567890123456789012345678.5` has more than 36 digits before or after its point, which is the limit",
    ),
];

#[test]
fn every_kind_at_any_place_is_told_alike_by_every_engine() {
    let dir = dir();
    let good = &STATIONS[..STATIONS[..20_000]
        .iter()
        .rposition(|&b| b == b'\n')
        .unwrap()
        + 1];
    let starts: Vec<usize> = [0]
        .into_iter()
        .chain(
            good.iter()
                .enumerate()
                .filter(|(_, b)| **b == b'\n')
                .map(|(at, _)| at + 1),
        )
        .collect();
    for (n, (record, cause)) in KINDS.iter().enumerate() {
        // At the start, around block and window edges, anywhere, at the end.
        let nearest = |at: usize| starts.partition_point(|&start| start <= at) - 1;
        let places = [
            0,
            1,
            nearest(4096),
            nearest(8192 - 6),
            nearest(n * 700),
            starts.len() - 1,
        ];
        let place = places[n % places.len()];
        let at = starts[place];
        let text = [&good[..at], record, b"\n", &good[at..]].concat();
        let path = write(dir.path(), "bad", &text);
        let end_of_record = at + record.len();
        let want = format!(
            "{}: byte {at}-{end_of_record} (line {}): {cause}",
            str(&path),
            place + 1
        );
        // What ends with a carriage return has another before its newline: it stays a part.
        let text = match record.ends_with(b"\r") {
            true => [&good[..at], record, b"\r\n", &good[at..]].concat(),
            false => text,
        };
        write(dir.path(), "bad", &text);
        assert_eq!(
            reference::aggregate(&[&text], b';', 1 << 20)
                .lowest()
                .unwrap()
                .place(str(&path)),
            want[..want.len() - cause.len()]
        );
        for way in WAYS.iter() {
            for block in ["4K", "64K"] {
                let mut command = ringfold(["aggregate", "-j", "2", "-b", block]);
                let error = end(command.args(way.flags()).arg(&path)).failure(1);
                // Some may be read in another way.
                let said = error.strip_prefix(&want);
                let is_hint = |said: &str| said.is_empty() || said.starts_with(": `--");
                assert!(said.is_some_and(is_hint), "{way:?} {block}: {error}");
            }
        }
    }
}

#[test]
fn a_long_bad_number_is_shortened() {
    let dir = dir();
    let path = write(
        dir.path(),
        "bad",
        format!("a;1{}\n", "x".repeat(5_000)).as_bytes(),
    );
    let error = end(&mut ringfold(["aggregate", str(&path)])).failure(1);
    assert!(error.contains("byte 0-5003 (line 1): `1xxx"), "{error}");
    assert!(error.len() < str(&path).len() + 120, "{error}");
}

/// What the input may be instead is said of its first record, and of no other.
#[test]
fn an_input_of_another_kind_gets_a_hint() {
    let dir = dir();
    let hints: [(&[u8], &[u8], &str); 4] = [
        (
            b"a,1.0",
            b"b,2.0\n",
            "1 field where 2 are expected: `-d ','` makes it 2",
        ),
        (
            b"city;mean",
            &STATIONS,
            "`mean` is not a number: `-H` takes the first line for the names of the columns",
        ),
        (
            b"city\tmean",
            b"a\t1.0\n",
            "1 field where 2 are expected: try `-d '\\t' -H`, which takes the first line for the names of the columns",
        ),
        (
            b"city,country,mean",
            b"Kiel,Germany,1.0\nBern,Switzerland,2.0\n",
            "1 field where 2 are expected: `-k` and `-a` group by any columns, such as `-k 1 -a mean:3`, with `-H` if the first line has their names",
        ),
    ];
    for (record, rest, reported) in hints {
        let text = [record, b"\n", rest].concat();
        let first = write(dir.path(), "first", &text);
        let marked = write(dir.path(), "marked", &[b"\xef\xbb\xbf", &text[..]].concat());
        let second = write(dir.path(), "second", &[b"a;1.0\n", record, b"\n"].concat());
        let (bare, _) = reported.split_once(": ").unwrap();
        let length = record.len();
        for way in WAYS.iter() {
            let said = |path: &_| {
                let args = ["aggregate", "-f", "1brc"];
                end(ringfold(args).args(way.flags()).arg(path)).failure(1)
            };
            let want = format!("{}: byte 0-{length} (line 1): {reported}", str(&first));
            assert_eq!(said(&first), want, "{way:?}");
            let bytes = format!("3-{}", 3 + length);
            let want = format!("{}: byte {bytes} (line 1): {reported}", str(&marked));
            assert_eq!(said(&marked), want, "{way:?}");
            let want = format!("{}: byte 6-{} (line 2): {bare}", str(&second), 6 + length);
            assert_eq!(said(&second), want, "{way:?}");
        }
    }
}

/// Who follows a hint gets an answer of all of the file's rows.
#[test]
fn a_hint_is_right() {
    let dir = dir();
    for (text, flags, rows) in [
        ("Kiel,1.5\nBonn,2\n", &["-d", ","][..], 2),
        ("station;value\nKiel;1\nBonn;2\n", &["-H"], 2),
        ("station\tvalue\r\nKiel\t1\r\n", &["-d", "\\t", "-H"], 1),
    ] {
        let path = write(dir.path(), "file", text.as_bytes());
        let error = end(&mut ringfold(["aggregate", "-f", "1brc", str(&path)])).failure(1);
        let hint = flags.join(" ").replace(",", "','").replace("\\t", "'\\t'");
        assert!(error.contains(&format!("`{hint}`")), "{error}");
        let mut command = ringfold(["aggregate", "--stats=json"]);
        let (_, said) = end(command.args(flags).arg(&path)).answer_and_notices();
        let json = said.lines().find(|line| line.starts_with('{')).unwrap();
        let stats: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(stats["job"]["rows"], rows, "{said}");
    }
    for (text, delimiters) in [
        (
            "id,name,town,street,value,date\n1,a,b,c,5,d\n",
            &[";", ","][..],
        ),
        ("station,value\nKiel,Holtenau,3\n", &[";", ","]),
    ] {
        for delimiter in delimiters {
            let path = write(dir.path(), "file", text.as_bytes());
            let args = ["aggregate", "-f", "1brc", "-d", delimiter, str(&path)];
            let error = end(&mut ringfold(args)).failure(1);
            assert!(
                !error.contains("-d '") && !error.contains("skip"),
                "{error}"
            );
        }
    }
}

/// An answer without rows would look like that of an empty file.
#[test]
fn nothing_but_skipped_records_is_an_error() {
    let dir = dir();
    let path = write(dir.path(), "file", b"\na,b,c\n1,2,3\n4,5,6\n");
    let target = dir.path().join("out");
    for way in WAYS.iter() {
        for block in ["3", "1M"]
            .iter()
            .filter(|&&block| !way.direct || block != "3")
        {
            let mut command = ringfold(["aggregate", "-d,", "--on-error=skip", "-q", "-b", block]);
            command
                .args(way.flags())
                .args(["-o", str(&target), str(&path)]);
            let error = end(&mut command).failure(1);
            let want = "byte 1-6 (line 2): 3 fields where 2 are expected (the first of 3 records, all skipped)";
            assert_eq!(error, format!("{}: {want}", str(&path)), "{way:?}");
            assert!(!target.exists());
        }
    }
    let empty = write(dir.path(), "empty", b"\n\n");
    assert_eq!(
        end(&mut ringfold(["aggregate", str(&empty)])).answer(),
        b"{}\n"
    );
    // One row is an answer, and the number of skipped records is printed even if nothing else is.
    let some = write(dir.path(), "some", b"broken\na;1.0\n");
    let mut command = ringfold(["aggregate", "-q", "--on-error", "skip", str(&some)]);
    let (out, said) = end(&mut command).answer_and_notices();
    assert_eq!(out, b"{a=1.0/1.0/1.0}\n");
    let want = format!(
        "ringfold: 1 record skipped, the first at {} byte 0 line 1: 1 field where 2 are expected\n",
        str(&some)
    );
    assert_eq!(said, want);
}

#[test]
fn of_several_the_lowest_is_told() {
    let dir = dir();
    let quarter = &STATIONS[..STATIONS.len() / 4];
    let mut text = quarter[..quarter.iter().rposition(|&b| b == b'\n').unwrap()].to_vec();
    for at in [30_000, 30_100, 60_000] {
        let line = at + text[at..].iter().position(|&b| b == b'\n').unwrap() + 1;
        text.splice(line..line, *b"broken\n");
    }
    let first = &STATIONS[..STATIONS.iter().position(|&b| b == b'\n').unwrap()];
    let good = write(dir.path(), "good", first);
    let bad = write(dir.path(), "bad", &text);
    let worse = write(dir.path(), "worse", b"broken from the start\n");
    let files = [first, &text, b"broken from the start\n"];
    let paths = [good, bad, worse];
    let answer = reference::aggregate(&files, b';', 1 << 20);
    let lowest = answer.lowest().unwrap();
    assert_eq!((lowest.file, answer.malformed.len()), (1, 4));
    let want = lowest.place(str(&paths[lowest.file]));
    for way in WAYS.iter() {
        for (block, threads) in [("4K", "8"), ("32K", "2"), ("4M", "1")] {
            let mut command = ringfold(["aggregate", "-b", block, "-j", threads]);
            let error = end(command.args(way.flags()).args(&paths)).failure(1);
            assert!(
                error.starts_with(&want),
                "{way:?} {block}: {error}, not {want}"
            );
        }
    }
}

#[test]
fn a_record_of_a_pipe_has_its_line() {
    for way in cached_ways() {
        let mut command = ringfold(["aggregate", "-b", "3"]);
        let mut child = start(command.args(way.flags()).arg("-").stdin(Stdio::piped()));
        feed(&mut child, b"a;1.0\nb;2.0\nc;3\nd\nf".to_vec());
        let error = end_of(child).failure(1);
        let want = "-: byte 16-17 (line 4): 1 field where 2 are expected";
        assert_eq!(error, want, "{way:?}");
    }
}

#[test]
fn a_record_of_a_part_has_its_line_in_the_file() {
    let dir = dir();
    let file = dir.path().join("a.csv");
    let rejects = dir.path().join("rejects");
    for first in ["", "a,1\n"] {
        let text: String = (1..100)
            .map(|n| format!("k{n},{}\n", ["x", "1"][n % 2]))
            .collect();
        std::fs::write(&file, format!("{first}{text}")).unwrap();
        let flags = ["-k", "2", "-a", "count:1,sum:2", "--single-line"];
        let run = |more: &[&str]| {
            let all = [
                &["aggregate"][..],
                &flags,
                &["--rejects", str(&rejects)],
                more,
            ]
            .concat();
            let ended = end(&mut ringfold(all.iter().copied().chain([str(&file)])));
            let (_, said) = ended.answer_and_notices();
            let kept = std::fs::read_to_string(&rejects).unwrap();
            let kept = kept.lines().skip(1).map(String::from).collect::<Vec<_>>();
            let place = said.split_once(" byte ").unwrap().1;
            (place.split_once(':').unwrap().0.to_string(), kept)
        };
        let (_, whole) = run(&[]);
        let mut parts = Vec::new();
        for part in ["1/3", "2/3", "3/3"] {
            for more in [&["--engine", "pread", "-b64", "-j2"][..], &["-j1"]] {
                let (place, mut kept) = run(&[&["--range", part][..], more].concat());
                let first: Vec<&str> = kept[0].split(',').collect();
                assert_eq!(place, format!("{} line {}", first[1], first[2]));
                if more.len() == 1 {
                    parts.append(&mut kept);
                }
            }
        }
        assert!(whole.len() > 40 && parts == whole, "{parts:?}");
    }
}

#[test]
fn a_failure_in_a_stream_precedes_one_in_a_later_file() {
    let dir = dir();
    let bad = write(dir.path(), "bad", b"a;1.0\nbroken\n");
    for way in cached_ways() {
        let run = |files: [&str; 3]| {
            let mut command = ringfold(["aggregate"]);
            command.args(way.flags()).args(files).stdin(Stdio::piped());
            let mut child = start(&mut command);
            feed(&mut child, b"b;2.0\nb;\n".to_vec());
            end_of(child).failure(1)
        };
        let error = run(["-", str(&bad), str(&bad)]);
        assert!(error.starts_with("-: byte 6-8"), "{way:?}: {error}");
        let error = run([str(&bad), "-", str(&bad)]);
        assert!(
            error.starts_with(&format!("{}: byte 6-12 ", str(&bad))),
            "{way:?}: {error}"
        );
    }
}

#[test]
fn skipping_drops_nothing_else_and_says_how_many() {
    let dir = dir();
    let good: Vec<&[u8]> = STATIONS
        .split_inclusive(|&b| b == b'\n')
        .take(4_000)
        .collect();
    let mut text = Vec::new();
    let mut skipped = 0;
    for (n, row) in good.iter().enumerate() {
        if n % 3 == 0 {
            let (bad, _) = KINDS[n / 3 % KINDS.len()];
            // One of the kinds is saved by its newline.
            text.extend(if bad.ends_with(b"\r") { b"broken" } else { bad });
            text.push(b'\n');
            skipped += 1;
        }
        text.extend(*row);
    }
    text.extend(b"\n\nbroken");
    skipped += 1;
    let path = write(dir.path(), "bad", &text);
    let want = reference::aggregate(&[good.concat()], b';', 1 << 20);
    let (text, rows) = (want.text(Style::OneBrc), want.rows);
    assert_eq!(skipped, 1335);
    let said = format!(
        "ringfold: 1,335 records skipped, the first at {} byte 0 line 1: 1 field where 2 are expected\n",
        str(&path)
    );
    for way in WAYS.iter() {
        for block in ["4K", "1M"] {
            let mut command = ringfold(["aggregate", "--on-error", "skip", "-b", block]);
            command.args(way.flags()).args(["-j", "2"]).arg(&path);
            let (got, notices) = end(&mut command).answer_and_notices();
            assert!(got == text, "{way:?} {block}");
            assert_eq!(notices, said, "{way:?} {block}");
        }
    }
    let mut command = ringfold(["aggregate", "--on-error=skip", "--stats=json", str(&path)]);
    let (_, stats) = end(&mut command).answer_and_notices();
    let stats: serde_json::Value =
        serde_json::from_str(stats.strip_prefix(&*said).expect("the notice first")).unwrap();
    assert_eq!(stats["job"]["skipped"], skipped);
    assert_eq!(stats["job"]["rows"], rows);
}

#[test]
fn nothing_is_said_where_nothing_is_skipped() {
    let dir = dir();
    let path = write(dir.path(), "good", b"a;1.0\n\n");
    let got = end(&mut ringfold([
        "aggregate",
        "--on-error",
        "skip",
        str(&path),
    ]))
    .answer();
    assert_eq!(got, b"{a=1.0/1.0/1.0}\n");
}

/// A text of lines with a hole of NULs before its sixth line, as a log has that was cut while a program went on writing to it.
fn holed(lines: impl Fn(usize) -> String, count: usize, hole: usize) -> (Vec<u8>, usize) {
    let part = |from, to| (from..to).map(&lines).collect::<String>().into_bytes();
    let before = part(0, 5);
    let at = before.len();
    ([before, vec![0; hole], part(5, count)].concat(), at)
}

/// NULs become part of no key: the record is refused by its place and their number, or left out.
#[test]
fn a_hole_of_nuls_is_no_key() {
    let dir = dir();
    let city = |row: usize| ["Bern", "Oslo", "Rome"][row % 3];
    let comma = |row: usize| match row {
        0 => "city,price\n".to_string(),
        row => format!("{},{row}\n", city(row)),
    };
    let tab = |row: usize| comma(row).replace(',', "\t");
    let log = |row: usize| {
        let time = "[12/Mar/2026:06:25:01 +0000]";
        format!(
            "192.0.2.{} - - {time} \"GET /a HTTP/1.1\" 200 10 \"-\" \"c\"\n",
            row % 3
        )
    };
    let pair = |row: usize| format!("{};{row}.5\n", city(row));
    let csv = "city,count\nBern,3\nOslo,3\nRome,2\n";
    let hosts = "host,count\n192.0.2.0,4\n192.0.2.1,3\n192.0.2.2,2\n";
    let pairs = "{Bern=0.5/5.0/9.5, Oslo=1.5/4.5/7.5, Rome=2.5/5.5/8.5}\n";
    for hole in [130, 4096, 3 << 20] {
        for (name, (text, at), flags, answer) in [
            ("f.csv", holed(comma, 10, hole), &["-k", "city"][..], csv),
            ("f.tsv", holed(tab, 10, hole), &["-k", "city"], csv),
            (
                "f.log",
                holed(log, 10, hole),
                &["--log", "combined", "-k", "host"],
                hosts,
            ),
            ("f.txt", holed(pair, 10, hole), &[], pairs),
        ] {
            let file = write(dir.path(), name, &text);
            let whole = |way: &str| {
                let end = at + hole;
                let line = format!("{way}: byte {at}-{end} (line 6)");
                (line, format!("{hole} NUL bytes stand in the record: try "))
            };
            for skips in [false, true] {
                let skip = if skips {
                    &["--on-error", "skip"][..]
                } else {
                    &[]
                };
                let flags = [&["aggregate"], flags, skip].concat();
                let check = |way: &str, ended: crate::support::Ended| {
                    if skips {
                        let (said, notices) = ended.answer_and_notices();
                        assert_eq!(String::from_utf8_lossy(&said), answer, "{way} {hole}");
                        let left_out =
                            format!("1 record skipped, the first at {way} byte {at} line 6");
                        assert!(notices.contains(&left_out), "{notices}");
                        return;
                    }
                    let said = ended.failure(1);
                    let (line, why) = whole(way);
                    // Quoted fields of a pipe can't be read again, so the number isn't known.
                    if !(way == "-" && name == "f.csv" && hole > 1 << 20) {
                        assert!(said.contains(&line) && said.contains(&why), "{said}");
                    }
                };
                for way in cached_ways() {
                    let flags = [&flags[..], &way.flags(), &[str(&file)]].concat();
                    check(str(&file), end(&mut ringfold(flags)));
                }
                let mut child =
                    start(ringfold([&flags[..], &["-"]].concat()).stdin(Stdio::piped()));
                feed(&mut child, text.clone());
                check("-", end_of(child));
            }
        }
    }
}

/// As many records over the limit as there are, in blocks of any size: what is said of one doesn't depend on how much of it
/// a block has.
#[test]
fn any_number_of_records_over_the_limit() {
    let dir = dir();
    let many = write(dir.path(), "many", &b"abcdefgh;1.0\na;2.0\n".repeat(20_000));
    let hole = [&b"a;1.0\n"[..], &[b'x'; 1500], &[0; 1000], b";2.0\n"].concat();
    let hole = write(dir.path(), "hole", &hole);
    for way in cached_ways() {
        for block in ["4K", "8M"] {
            let run = |limit: &str, file: &std::path::Path| {
                let flags = [
                    "aggregate",
                    "-f1brc",
                    "--on-error=skip",
                    "--max-record",
                    limit,
                ];
                let flags = [&flags[..], &["-b", block], &way.flags(), &[str(file)]].concat();
                end(&mut ringfold(flags)).answer_and_notices()
            };
            let (said, notices) = run("6", &many);
            assert_eq!(said, b"{a=2.0/2.0/2.0}\n", "{way:?}");
            assert!(notices.contains("20,000 records skipped"), "{notices}");
            let (said, notices) = run("1000", &hole);
            assert_eq!(said, b"{a=1.0/1.0/1.0}\n", "{way:?}");
            let why = "byte 6 line 2: a record of more than 1000 bytes";
            assert!(notices.contains(why), "{way:?} {block}: {notices}");
        }
    }
}

/// A record over the limit is malformed as others are: what comes behind it is read.
#[test]
fn a_record_over_the_limit_is_left_out() {
    let dir = dir();
    let long = "x".repeat(70_000);
    let text = format!("a;1.0\n{long};2.0\nb;x\nb;3.0\n{long}");
    let file = write(dir.path(), "f", text.as_bytes());
    let rejects = dir.path().join("rejects");
    for way in cached_ways() {
        let flags = ["aggregate", "--on-error=skip", "--max-record=1000"];
        let flags = [&flags[..], &way.flags(), &[str(&file)]].concat();
        let (said, notices) = end(&mut ringfold(&flags)).answer_and_notices();
        assert_eq!(
            said,
            b"{a=1.0/1.0/1.0, b=3.0/3.0/3.0}\n",
            "{}",
            way.engine.name()
        );
        let why = "3 records skipped, the first at ";
        assert!(
            notices.contains(why)
                && notices.contains("byte 6 line 2: a record of more than 1000 bytes"),
            "{notices}"
        );
        let flags = [&flags[..], &["-d;", "-k1", "--rejects", str(&rejects)]].concat();
        let (said, _) = end(&mut ringfold(flags)).answer_and_notices();
        assert_eq!(said, b"key1,count\na,1\nb,2\n");
        let rejected = std::fs::read_to_string(&rejects).unwrap();
        let lines: Vec<_> = rejected
            .lines()
            .map(|line| &line[line.find("f,").unwrap_or(0)..])
            .collect();
        assert!(
            lines[1].starts_with("f,6,2,a record of more than 1000 bytes,xxx"),
            "{}",
            way.engine.name()
        );
        assert!(
            lines[2].starts_with(&format!("f,{},5,", text.len() - long.len())),
            "{}",
            &lines[2][..40]
        );
    }
}
