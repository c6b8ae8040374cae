//! What people type first, before they have read anything.

use std::path::Path;

use crate::support::{WAYS, dir, end, end_of, feed, ringfold, start, write};

const ORDERS: &[u8] = b"city,price,qty\nBern,1.50,2\nOslo,20,1\nBern,2.25,7\n";
const NOTICE: &str = "ringfold: notice: the first record looks like a header, and is counted: `-H` takes it for the names \
                      of the columns, `--no-header` for a record\n";

fn aggregate(dir: &Path, args: &[&str]) -> std::process::Command {
    let mut command = ringfold([&["aggregate"], args].concat());
    command.current_dir(dir);
    command
}

fn answer(dir: &Path, args: &[&str]) -> String {
    String::from_utf8(end(&mut aggregate(dir, args)).answer()).unwrap()
}

/// A column that is called by a name has a header above it.
#[test]
fn a_name_implies_a_header() {
    let dir = dir();
    write(dir.path(), "orders.csv", ORDERS);
    for (args, want) in [
        (&["-k", "city"][..], "city,count\nBern,2\nOslo,1\n"),
        (
            &["-k", "1", "-a", "sum:price"],
            "city,sum_price\nBern,3.75\nOslo,20.00\n",
        ),
        (&["-a", "max:price"], "max_price\n20.00\n"),
        (&["-k", "1", "--where", "qty > 1"], "city,count\nBern,2\n"),
        (
            &["-k", "1", "--no-header", "-H"],
            "city,count\nBern,2\nOslo,1\n",
        ),
    ] {
        for way in WAYS.iter() {
            let args = [args, &way.flags(), &["orders.csv"]].concat();
            assert_eq!(answer(dir.path(), &args), want, "{args:?}");
        }
        let mut child = start(aggregate(dir.path(), args).stdin(std::process::Stdio::piped()));
        feed(&mut child, ORDERS.to_vec());
        assert_eq!(end_of(child).answer(), want.as_bytes(), "{args:?}");
    }
}

/// Parts know the names, also those that the header isn't in; what they keep is what `-H` keeps.
#[test]
fn parts_know_the_header() {
    let dir = dir();
    write(dir.path(), "orders.csv", ORDERS);
    let ask = |columns: &[&str], part: &str, to: &str| {
        let flags = [
            "--single-line",
            "--range",
            part,
            "--save-partial",
            to,
            "orders.csv",
        ];
        answer(dir.path(), &[columns, &flags].concat());
        std::fs::read(dir.path().join(to)).unwrap()
    };
    let columns = ["-k", "city", "-a", "sum:price"];
    let mut parts = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        let implied = ask(&columns, part, &part.replace('/', "-"));
        assert!(implied == ask(&[&columns[..], &["-H"]].concat(), part, "named"));
        parts.push(part.replace('/', "-"));
    }
    let mut merge = ringfold(["merge"]);
    let merged = end(merge.args(&parts).current_dir(dir.path())).answer();
    assert_eq!(merged, b"city,sum_price\nBern,3.75\nOslo,20.00\n");
    for flag in [&[][..], &["-H"]] {
        let state = [&columns[..], flag, &["--continue", "state"]].concat();
        write(
            dir.path(),
            "more.csv",
            format!("city,price,qty\nOslo,1,{}\n", flag.len()).as_bytes(),
        );
        answer(dir.path(), &[&state[..], &["more.csv"]].concat());
    }
    let merged = end(ringfold(["merge", "state"]).current_dir(dir.path())).answer();
    assert_eq!(merged, b"city,sum_price\nOslo,2\n");
}

#[test]
fn a_header_that_is_counted_is_told() {
    let dir = dir();
    write(dir.path(), "orders.csv", ORDERS);
    write(
        dir.path(),
        "dates.csv",
        b"day,n\n2026-01-01,x\n2026-01-02,y\n",
    );
    write(
        dir.path(),
        "late.csv",
        [b"k,v\n".repeat(30), b"1,2\n".to_vec()].concat().as_slice(),
    );
    let counted = "key1,count\nBern,2\nOslo,1\ncity,1\n";
    for (args, want) in [
        (&["-k", "1", "orders.csv"][..], counted),
        (&["-k", "1", "-d", ",", "orders.csv"], counted),
        (
            &["-k", "1", "-a", "max:2", "--on-error", "null", "orders.csv"],
            "key1,max_2\nBern,2.25\nOslo,20.00\ncity,\n",
        ),
        (&["-k", "2", "dates.csv"], "key1,count\nn,1\nx,1\ny,1\n"),
    ] {
        let (told, notice) = end(&mut aggregate(dir.path(), args)).answer_and_notices();
        assert_eq!(String::from_utf8(told).unwrap(), want, "{args:?}");
        assert!(notice.starts_with(NOTICE), "{args:?} {notice}");
        for flag in ["--no-header", "-H", "-q"] {
            let told = end(&mut aggregate(dir.path(), &[&[flag], args].concat()));
            assert_eq!(told.code, Some(0));
            assert!(!told.stderr.contains("looks like a header"), "{told:?}");
        }
    }
    let mut child = start(aggregate(dir.path(), &["-k", "1"]).stdin(std::process::Stdio::piped()));
    feed(&mut child, ORDERS.to_vec());
    assert_eq!(end_of(child).stderr, NOTICE);
    // In joined files the header comes again.
    let joined = [ORDERS, ORDERS].concat();
    write(dir.path(), "joined.csv", &joined);
    let (_, notice) =
        end(&mut aggregate(dir.path(), &["-k", "1", "joined.csv"])).answer_and_notices();
    assert_eq!(notice, NOTICE);
    let told = end(&mut aggregate(
        dir.path(),
        &["-k", "1", "-a", "sum:2", "joined.csv"],
    ));
    assert!(told.failure(1).contains("`-H` takes the first line"));
    // Only figures under a name say that it is one.
    for text in [
        &b"a,b\nc,d\n"[..],
        b"2017,b\n1,2\n",
        b"a,b\n",
        b"NA,2\n1,2\n",
        b"a,1\nb,2\n",
        b"a,x\nb,2\nc,y\n",
    ] {
        write(dir.path(), "none.csv", text);
        answer(dir.path(), &["-k", "1", "none.csv"]);
    }
    answer(dir.path(), &["-k", "1", "late.csv"]);
}

#[test]
fn a_forgotten_header_is_named_by_the_error() {
    let dir = dir();
    write(dir.path(), "orders.csv", ORDERS);
    write(
        dir.path(),
        "dates.csv",
        b"day,n\n2026-01-01,x\n2026-01-02,y\n",
    );
    for (args, want, answered) in [
        (
            &["-k", "1", "-a", "sum:2", "orders.csv"][..],
            "orders.csv: byte 0-14 (line 1): `price` is not a number (column 2)",
            "city,sum_price\nBern,3.75\nOslo,20.00\n",
        ),
        (
            &["-k", "1@month", "dates.csv"],
            "dates.csv: byte 0-5 (line 1): `day` isn't a time",
            "day_month,count\n2026-01,2\n",
        ),
    ] {
        for way in WAYS.iter() {
            let args = [args, &way.flags()].concat();
            let told = end(&mut aggregate(dir.path(), &args)).failure(1);
            let hint = ": `-H` takes the first line for the names of the columns";
            assert!(told.starts_with(want) && told.ends_with(hint), "{told}");
        }
        assert_eq!(answer(dir.path(), &[&["-H"], args].concat()), answered);
    }
    let told = end(&mut aggregate(
        dir.path(),
        &["--no-header", "-k", "city", "orders.csv"],
    ))
    .failure(2);
    assert!(
        told.ends_with("and `city` is a name: leave one of them out"),
        "{told}"
    );
}

/// A pipe can't be read again, so its lines are counted as they come.
#[test]
fn an_error_in_a_pipe_has_its_line() {
    let dir = dir();
    let rows = |delimiter: char| -> Vec<u8> {
        let row = |n: usize| format!("key{}{delimiter}{n}.5\n", n % 7);
        (0..40_000).map(row).collect::<String>().into_bytes()
    };
    let with =
        |delimiter, bad: &[u8]| [&rows(delimiter)[..], b"\n", bad, &rows(delimiter)].concat();
    let [plain, commas] = [with(';', b"key;free\n"), with(',', b"key,free\n")];
    let quoted = with(',', b"\"a\nb\"x,1\n");
    let json = [
        br#"{"k":"a","v":1}"#.as_slice(),
        b"\n\n",
        br#"{"k":"a","v":}"#,
    ]
    .concat();
    let log =
        [
            &b"192.0.2.1 - - [12/Mar/2026:06:25:01 +0000] \"GET / HTTP/1.1\" 200 1\n"
                .repeat(20_000)[..],
            b"no line\n",
        ]
        .concat();
    let long = [&rows(','), &vec![b'x'; 3 << 20][..]].concat();
    let query = |more: &[&'static str]| [&["-k", "1", "-a", "sum:2", "-d", ","], more].concat();
    for (args, text, line) in [
        (vec![], &plain, 40_002),
        (query(&[]), &commas, 40_002),
        (query(&["--quote", "\""]), &quoted, 40_002),
        (
            query(&["--quote", "\"", "--max-errors", "0"]),
            &quoted,
            40_002,
        ),
        (query(&["--skip-lines", "1"]), &commas, 40_002),
        (
            query(&["--comment", "#", "-H", "--quote", "\""]),
            &commas,
            40_002,
        ),
        (vec!["--jsonl", "-k", "k"], &json, 3),
        (vec!["--log", "common", "-k", "status"], &log, 20_001),
        (query(&[]), &long, 40_001),
    ] {
        let gzip = {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gzip, text).unwrap();
            gzip.finish().unwrap()
        };
        for (piped, threads) in [(text, "1"), (text, "3"), (&gzip, "2")] {
            let args = [&args[..], &["-j", threads]].concat();
            let mut child = start(aggregate(dir.path(), &args).stdin(std::process::Stdio::piped()));
            feed(&mut child, piped.clone());
            let told = end_of(child).failure(1);
            assert!(
                told.contains(&format!(" (line {line})")),
                "{args:?}: {told}"
            );
        }
    }
    let told = end(&mut ringfold(["aggregate", "/proc/self/status"])).failure(1);
    assert!(
        told.starts_with("/proc/self/status: byte 0-") && told.contains("(line 1)"),
        "{told}"
    );
}

const LOG: &[u8] = b"192.0.2.1 - - [12/Mar/2026:06:25:01 +0000] \"GET /a HTTP/1.1\" 200 512 \"-\" \"curl/8 (X; y)\"\n\
    192.0.2.1 - - [12/Mar/2026:06:26:01 +0000] \"GET /b HTTP/1.1\" 404 - \"-\" \"curl/8\"\n\
    192.0.2.7 - - [13/Mar/2026:06:26:01 +0000] \"GET /b HTTP/1.1\" 200 96 \"-\" \"curl/8\"\n";

/// What is in a file, and what to type.
#[test]
fn a_file_without_a_question_is_shown() {
    let dir = dir();
    write(dir.path(), "my orders.csv", ORDERS);
    let shown = "\
file          'my orders.csv'
records       3 fields named by a header
fields        between commas, which may stand in double quotes
looked at     the first 3 records

column  name   looks like                     nulls  first records
     1  city   text of up to 4 bytes              0  Bern  Oslo  Bern
     2  price  numbers with up to 2 decimals      0  1.50  20    2.25
     3  qty    whole numbers                      0  2     1     7

Ask, for example:
  ringfold aggregate -k city 'my orders.csv'
  ringfold aggregate -k city -a count,sum:price,mean:price 'my orders.csv'
What all records hold:
  ringfold describe 'my orders.csv'
";
    for args in [&["aggregate"][..], &[], &["aggregate", "--explain"]] {
        let mut command = ringfold([args, &["my orders.csv"]].concat());
        let told = end(command.current_dir(dir.path())).answer();
        assert_eq!(String::from_utf8(told).unwrap(), shown);
    }
    for flag in ["-V", "--version"] {
        let told = end(ringfold([flag, "my orders.csv"]).current_dir(dir.path())).answer();
        assert!(told.starts_with(b"ringfold "), "{flag}");
    }
}

/// Each command that is shown for a file answers, whatever the columns and the file are called.
#[test]
fn what_is_to_be_typed_works() {
    let dir = dir();
    let gzip = |text: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, text).unwrap();
        gzip.finish().unwrap()
    };
    let json = &b"{\"k\":\"a\",\"o\":{\"2017\":1.5,\"a b\":2}}\n{\"k\":\"b\"}\n"[..];
    let fields = &b"#Version: 1.0\n#Fields: date time c-ip sc-bytes\n2026-04-28\t09:01:02\ta\t5\n2026-04-28\t09:02:02\tb\t7\n"[..];
    for (name, text, words) in [
        (
            "orders.csv",
            ORDERS.to_vec(),
            "-k city -a count,sum:price,mean:price ",
        ),
        ("orders", ORDERS.to_vec(), "-k city -a "),
        ("orders.csv.gz", gzip(ORDERS), "-k city -a "),
        ("it's.csv", ORDERS.to_vec(), r"-k city 'it'\''s.csv'"),
        (
            "semicolons.txt",
            b"city;price\nBern;1\nOslo;2\n".to_vec(),
            "sum:price",
        ),
        (
            "columns.tsv",
            b"a\tx\t2\nb\ty\t3\na\tz\t4\n".to_vec(),
            "-k 1 -a count,sum:3,mean:3 ",
        ),
        (
            "odd.csv",
            b"a:b,\"c,d\",n\nx,1.5,3\nx,2.5,4\n".to_vec(),
            "-k '\"a:b\"' -a 'count,sum:\"c,d\",mean:\"c,d\"' ",
        ),
        (
            "twice.csv",
            b"a,v,v\nx,1.5,1\ny,2.5,2\n".to_vec(),
            "-k a -a count,sum:2,mean:2 ",
        ),
        (
            "same.csv",
            b"a,a\nx,1.5\ny,2.5\n".to_vec(),
            "-H -k 1 -a count,sum:2,mean:2 ",
        ),
        (
            "days.csv",
            b"day,n\n2026-01-02,1\n2026-01-03,2\n".to_vec(),
            "-k day@day ",
        ),
        (
            "access.log",
            LOG.to_vec(),
            "--log combined -k host -a count,sum:bytes,mean:bytes ",
        ),
        (
            "events",
            json.to_vec(),
            "--jsonl -k k -a count,sum:o.2017,mean:o.2017 ",
        ),
        ("events.jsonl", json.to_vec(), "-k k -a "),
        (
            "w3c.log",
            fields.to_vec(),
            r"--comment '#' -d '\t' -k 2 -a count,sum:4,mean:4 ",
        ),
        ("words.csv", b"a\nb\na\n".to_vec(), "-k 1 "),
        ("words", b"one\ntwo\none\n".to_vec(), r"-d '\x1f' -k 1 "),
        (
            "comma.txt",
            b"Name;Betrag;n\nA;1,50;1\nB;1,234;2\n".to_vec(),
            "--decimal-comma -k Name -a count,sum:Betrag,mean:Betrag ",
        ),
        (
            "variants.tsv",
            b"##format=v4\n##note=<x>\n#CHROM\tPOS\nchr1\t14\nchr2\t5\n".to_vec(),
            r##"--comment '##' -k '"#CHROM"' -a count,sum:POS,mean:POS "##,
        ),
        (
            "remarks.csv",
            b"# from a station\ncity,v\nB,1\nC,2\n".to_vec(),
            "--comment '#' -k city -a count,sum:v,mean:v ",
        ),
    ] {
        write(dir.path(), name, &text);
        let told =
            String::from_utf8(end(ringfold([name]).current_dir(dir.path())).answer()).unwrap();
        let (_, lines) = told.split_once("\nAsk, for example:\n").expect(&told);
        assert!(lines.contains(words), "{told}");
        assert!(
            lines.contains("\nWhat all records hold:\n  ringfold describe "),
            "{told}"
        );
        for line in lines.lines().take_while(|line| line.starts_with(' ')) {
            let ended = shell(dir.path(), line.trim());
            assert_eq!(
                (ended.code, &*ended.stderr),
                (Some(0), ""),
                "{line}\n{told}"
            );
            assert!(
                ended.stdout.iter().filter(|&&byte| byte == b'\n').count() > 1,
                "{line}"
            );
        }
        // The same from a pipe, whose name tells nothing.
        let mut child = start(aggregate(dir.path(), &[]).stdin(std::process::Stdio::piped()));
        feed(&mut child, text.clone());
        let piped = String::from_utf8(end_of(child).stdout).unwrap();
        // Neither the name nor the lines tell.
        if ["words.csv", "odd.csv"].contains(&name) {
            continue;
        }
        let (_, lines) = piped.split_once("\nAsk, for example:\n").expect(&piped);
        for line in lines.lines().take_while(|line| line.starts_with(' ')) {
            let line = line.trim().replace(
                "…",
                &format!("ringfold quote >/dev/null </dev/null; cat \"{name}\""),
            );
            let ended = shell(dir.path(), &line);
            assert_eq!(
                (ended.code, &*ended.stderr),
                (Some(0), ""),
                "{line}\n{piped}"
            );
        }
    }
}

/// Without words, data on standard input is shown; where there is none, help is.
#[test]
fn data_alone_on_standard_input_is_shown() {
    let dir = dir();
    write(dir.path(), "o.csv", b"city,price\nBern,1.50\nOslo,2\n");
    write(dir.path(), "empty", b"");
    for line in [
        "cat o.csv | ringfold",
        "ringfold <o.csv",
        "gzip -c o.csv | ringfold",
        "(sleep 0.3; cat o.csv) | ringfold",
    ] {
        let said = String::from_utf8(shell(dir.path(), line).answer()).unwrap();
        assert!(said.starts_with("file          standard input\n"), "{said}");
        assert!(
            said.contains("  … | ringfold aggregate -k city\n"),
            "{said}"
        );
    }
    for line in ["ringfold </dev/null", "ringfold <empty", "true | ringfold"] {
        let ended = shell(dir.path(), line);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), &b""[..]), "{line}");
        assert!(ended.stderr.contains("Usage: ringfold <COMMAND>"), "{line}");
    }
}

/// The delimiter that an error names leads to what is in the file.
#[test]
fn a_delimiter_that_is_named_shows_the_file() {
    let dir = dir();
    let text = "\u{feff}\"Name\";\"Betrag\"\r\n\"Müller, A\";\"1,50\"\r\n\"Otto\";\"2,25\"\r\n";
    write(dir.path(), "excel.csv", text.as_bytes());
    let told = shell(dir.path(), "ringfold excel.csv").failure(2);
    assert!(told.contains("try `-d ';'`"), "{told}");
    let shown = shell(dir.path(), "ringfold excel.csv -d ';'").answer();
    let shown = String::from_utf8(shown).unwrap();
    assert!(
        shown.contains("1  Name    text of up to 10 bytes"),
        "{shown}"
    );
    let first = shell(dir.path(), "ringfold -d ';' excel.csv").answer();
    assert_eq!(String::from_utf8(first).unwrap(), shown);
    // The command that is shown reads commas before decimals.
    let mut lines = shown.lines().rev().map(str::trim);
    assert_eq!(
        lines.next(),
        Some("ringfold describe -d ';' --decimal-comma excel.csv")
    );
    let line = lines.nth(1).unwrap();
    let command = "ringfold aggregate -d ';' --decimal-comma -k Name -a count,sum:Betrag,mean:Betrag excel.csv";
    assert_eq!(line, command);
    assert_eq!(
        String::from_utf8(shell(dir.path(), line).answer()).unwrap(),
        "Name,count,sum_Betrag,mean_Betrag\n\"Müller, A\",1,1.50,1.5000\nOtto,1,2.25,2.2500\n"
    );
    // Pairs between the named delimiter are aggregated.
    write(dir.path(), "pairs.txt", b"a,1\nb,2\n");
    assert_eq!(
        answer(dir.path(), &["-d,", "pairs.txt"]),
        "{a=1.0/1.0/1.0, b=2.0/2.0/2.0}\n"
    );
}

/// What the first records leave open is said there, too.
#[test]
fn what_is_shown_may_be_read_otherwise() {
    let dir = dir();
    write(dir.path(), "f.csv", b"a,b\n  \"x\",1\ny,2\n");
    let ended = shell(dir.path(), "ringfold f.csv");
    let want = "ringfold: notice: f.csv: byte 4 (line 2): blanks before a quote";
    assert!(
        ended.code == Some(0) && ended.stderr.starts_with(want),
        "{}",
        ended.stderr
    );
}

fn shell(dir: &Path, line: &str) -> crate::support::Ended {
    let program = crate::support::program();
    let program = program.parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(dir)
        .env("PATH", path);
    end(command.stdin(std::process::Stdio::null()))
}

/// Lines of `key;value` are aggregated, and what is wrong with one of them is told.
#[test]
fn pairs_are_no_other_file() {
    let dir = dir();
    for (text, want) in [
        (
            &b"a;1\nb,2,3\n"[..],
            "byte 4-9 (line 2): 1 field where 2 are expected",
        ),
        (b"a;x\n", "byte 0-3 (line 1): `x` is not a number"),
        (b"a;x\nb;2\n", "byte 0-3 (line 1): `x` is not a number"),
        (
            b"\n\na;1;2\nb;1\n",
            "byte 2-7 (line 3): 3 fields where 2 are expected",
        ),
    ] {
        write(dir.path(), "f", text);
        assert_eq!(
            end(&mut aggregate(dir.path(), &["f"])).failure(1),
            format!("f: {want}")
        );
    }
    for text in [&b""[..], b"\n\n", b"a;1\n\nb;2\r\n", b";1\n", b"a;1"] {
        write(dir.path(), "f", text);
        let answered = answer(dir.path(), &["f"]);
        assert_eq!(answered, answer(dir.path(), &["-f", "1brc", "f"]));
    }
    // Who wants an answer gets no overview.
    write(dir.path(), "orders.csv", ORDERS);
    for args in [&["-f", "1brc"][..], &["-o", "x"], &["--on-error", "skip"]] {
        let args = [args, &["orders.csv"]].concat();
        end(&mut aggregate(dir.path(), &args)).failure(1);
    }
    let told = end(&mut aggregate(
        dir.path(),
        &["--jsonl", "-o", "x", "orders.csv"],
    ))
    .failure(2);
    assert!(told.starts_with("--jsonl needs columns"), "{told}");
    assert!(!dir.path().join("x").exists());
}

/// What can't be read as columns is named, and how to read it.
#[test]
fn what_is_no_text_in_lines_is_named() {
    let dir = dir();
    std::fs::create_dir_all(dir.path().join("d/below")).unwrap();
    let zip = |name: &[u8]| [b"PK\x03\x04", &[0; 26][..], name].concat();
    for (name, text, want) in [
        (
            "b.xlsx",
            zip(b"[Content_Types].xml"),
            "an Excel file begins: try `xlsx2csv b.xlsx | ringfold aggregate -`",
        ),
        (
            "z.zip",
            zip(b"a.csv"),
            "a zip file begins: try `unzip -p z.zip | ringfold aggregate -`",
        ),
        (
            "u.csv",
            b"\xff\xfea\0,\0".to_vec(),
            "UTF-16 begins: try `iconv -f UTF-16 -t UTF-8 u.csv | ringfold aggregate -`",
        ),
        (
            "my p",
            b"PAR1\x15\x04".to_vec(),
            "a Parquet file begins: try `duckdb -csv -c \"from read_parquet('my p')\" | ringfold aggregate -`",
        ),
        (
            "s.db",
            b"SQLite format 3\0".to_vec(),
            "a SQLite database begins: try `sqlite3 -csv -header s.db 'select * from TABLE' | ringfold aggregate -`",
        ),
        (
            "a.json",
            b"[{\"a\":1}]".to_vec(),
            "a JSON array begins: try `jq -c '.[]' a.json | ringfold aggregate --jsonl -`",
        ),
        (
            "o.jsonl",
            b"{\"a\":1,\n\"b\":2}\n".to_vec(),
            "several lines begins: try `jq -c . o.jsonl | ringfold aggregate --jsonl -`",
        ),
    ] {
        write(dir.path(), name, &text);
        for args in [&[name][..], &["aggregate", name]] {
            let told = end(ringfold(args).current_dir(dir.path())).failure(1);
            assert!(told.ends_with(want), "{told}");
        }
    }
    write(dir.path(), "f.csv", b"a,1\n");
    let save = ["-k1", "-acount", "--save-partial", "p", "f.csv"];
    end(&mut aggregate(dir.path(), &save)).answer();
    for args in [
        &["p"][..],
        &["aggregate", "p"],
        &["aggregate", "-k1", "p"],
        &["describe", "p"],
    ] {
        let told = end(ringfold(args).current_dir(dir.path())).failure(1);
        let want = "p: it isn't text in lines: this is how a partial begins: `ringfold merge` prints the answer that it holds";
        assert_eq!(told, want);
    }
    let merged = end(ringfold(["merge", "p"]).current_dir(dir.path())).answer();
    assert!(merged.ends_with(b"a,1\n"));
    let told = end(ringfold(["d"]).current_dir(dir.path())).failure(1);
    assert_eq!(
        told,
        "d: Is a directory [EISDIR]: try `find d -type f -exec ringfold aggregate {} +`"
    );
}

/// Names of columns come from the input: a terminal must not obey them.
#[test]
fn names_are_shown_without_what_a_terminal_obeys() {
    let dir = dir();
    let path = write(dir.path(), "f.csv", b"\x1b[31mred,b\x07\nk,1\nj,2\n");
    for flags in [&["-H"][..], &["-H", "--explain", "-k", "1", "-a", "sum:2"]] {
        let mut command = ringfold(["aggregate"]);
        let shown = end(command.args(flags).arg(&path)).answer();
        let shown = String::from_utf8(shown).unwrap();
        let obeyed = |letter: char| letter.is_control() && letter != '\n';
        assert!(!shown.contains(obeyed), "{shown:?}");
        assert!(
            shown.contains(r"\x1b[31mred") && shown.contains(r"b\x07"),
            "{shown}"
        );
    }
}
