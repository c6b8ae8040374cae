//! How files are written: quotes, headers, comments, line ends. Each case has one answer, whatever reads it, as a file,
//! through a pipe or compressed.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Ended, WAYS, dir, end, end_of, feed, ringfold, start, str, write};

/// A file's ending and text, the flags, the answer, and a part of what is said on stderr.
type Case = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
);

const CASES: &[Case] = &[
    // Quotes.
    (
        "txt",
        "\"Smith, John\",5\n\"Smith, Mary\",7\n\"Doe, Jane\",1\n\"Smith, John\",4\n",
        &["-k", "1", "-a", "count,sum:2"],
        "key1,count,sum_2\n\"Doe, Jane\",1,1\n\"Smith, John\",2,9\n\"Smith, Mary\",1,7\n",
        "",
    ),
    (
        "log",
        "\"Smith, John\",5\n\"Smith, Mary\",7\n",
        &["-d", ",", "-a", "distinct:1,sum:2"],
        "distinct_1,sum_2\n2,12\n",
        "",
    ),
    (
        "txt",
        "\"a\"\"b\",1\n\"c\nd\",2\n",
        &["-k", "1", "-a", "sum:2"],
        "key1,sum_2\n\"a\"\"b\",1\n\"c\nd\",2\n",
        "",
    ),
    (
        "txt",
        "\"a\",1\n\"b\",2\n",
        &["-k", "1", "--quote", "none"],
        "key1,count\n\"\"\"a\"\"\",1\n\"\"\"b\"\"\",1\n",
        "",
    ),
    (
        "tsv",
        "\"Source\"\t\"Items\"\n\"x\ty\"\t\"2\"\n\"z\"\t\"3\"\n",
        &["-H", "-k", "Source", "-a", "sum:Items"],
        "Source,sum_Items\nx\ty,2\nz,3\n",
        "",
    ),
    (
        "txt",
        "\"a\";\"b\"\n\"x;y\";\"2\"\n",
        &["-H", "-k", "a", "-a", "sum:b"],
        "a,sum_b\nx;y,2\n",
        "",
    ),
    (
        "tsv",
        "k\tv\n\"x\"y\t1\nz\t2\n",
        &["-H", "-k", "k"],
        "k,count\n\"\"\"x\"\"y\",1\nz,1\n",
        "byte 4 (line 2): fields begin with quotes that aren't closed",
    ),
    (
        "tsv",
        "k\tv\n\"x\"y\t1\nz\t2\n",
        &["-H", "-k", "k", "--quote", "none"],
        "k,count\n\"\"\"x\"\"y\",1\nz,1\n",
        "",
    ),
    // Headers that come again.
    (
        "csv",
        "city,price\nBern,1.50\nOslo,2\ncity,price\nBern,2.25\ncity,price\n",
        &["-H", "-k", "city"],
        "city,count\nBern,2\nOslo,1\n",
        "notice: 2 records are the header again and are left out, the first at IN byte 28 line 4: \
         `--repeated-header keep` takes them for records",
    ),
    (
        "csv",
        "city,price\nBern,1.50\nOslo,2\ncity,price\r\nBern,2.25\n",
        &["-H", "-k", "city", "-a", "sum:price"],
        "city,sum_price\nBern,3.75\nOslo,2.00\n",
        "notice: a record is the header again and is left out, the first at IN byte 28 line 4: ",
    ),
    (
        "csv",
        "\u{feff}city,price\nBern,1\n\u{feff}city,price\nBern,2\n",
        &["-H", "-a", "count,lexmax:city"],
        "count,lexmax_city\n2,Bern\n",
        "the first at IN byte 21 line 3: ",
    ),
    (
        "csv",
        "city,price\nBern,1\ncity,price\nBern,2\n",
        &[
            "-H",
            "-a",
            "count,max:price",
            "--where",
            "price < 2 or city = 'city'",
        ],
        "count,max_price\n1,1\n",
        "the first at IN byte 18",
    ),
    (
        "csv",
        "city,price\nBern,1\ncity,price\nBern,2\n",
        &["-H", "-k", "city", "--repeated-header", "keep"],
        "city,count\nBern,2\ncity,1\n",
        "",
    ),
    (
        "tsv",
        "k\tv\nx\t1\nk\tv\ny\t2\n",
        &["-H", "-k", "k", "--comment", "#", "--on-error", "skip"],
        "k,count\nx,1\ny,1\n",
        "the first at IN byte 8",
    ),
    // Comments.
    (
        "txt",
        "##format=v4\n##note=<x>\n#CHROM\tPOS\tQUAL\nchr1\t14\t30\nchr1\t22\t40\nchr2\t5\t10\n",
        &["-H", "--comment", "##", "-k", "#CHROM", "-a", "sum:QUAL"],
        "#CHROM,sum_QUAL\nchr1,70\nchr2,10\n",
        "",
    ),
    (
        "csv",
        "# made by a, b\ncity,price\nBern,1\n",
        &["-H", "--comment", "#", "-k", "city"],
        "city,count\nBern,1\n",
        "",
    ),
    // Line ends, empty lines, a line for spreadsheets.
    (
        "csv",
        "mpg,cyl\r\r\n1,4\r\r\n\"2\",\"4\"\r\r\n3,4\r\n",
        &["-H", "-k", "cyl", "-a", "sum:mpg"],
        "cyl,sum_mpg\n4,6\n",
        "byte 7 (line 1): several carriage returns end lines, and are left out",
    ),
    (
        "csv",
        "\n\r\ncity,price\nBern,1\n",
        &["-H", "-k", "city", "-a", "sum:price"],
        "city,sum_price\nBern,1\n",
        "",
    ),
    (
        "csv",
        "# c\n\ncity,price\n\nBern,1\n",
        &["-H", "--comment", "#", "-k", "city", "-a", "sum:price"],
        "city,sum_price\nBern,1\n",
        "",
    ),
    (
        "csv",
        "\u{feff}sep=;\r\ncity;price\r\nBern;1\r\n",
        &["-H", "-k", "city", "-a", "sum:price"],
        "city,sum_price\nBern,1\n",
        "",
    ),
    (
        "txt",
        "sep=|\na|1\nb|2\na|3\n",
        &["-k", "1", "-a", "sum:2"],
        "key1,sum_2\na,4\nb,2\n",
        "",
    ),
    // Blanks and escapes.
    (
        "csv",
        "k, v\na, \"1\"\nb , \"2, 0\"\n",
        &["-H", "-k", "k", "-a", "lexmax:v", "--trim"],
        "k,lexmax_v\na,1\nb,\"2, 0\"\n",
        "",
    ),
    (
        "csv",
        "k,v\na, \"1\"\n",
        &["-H", "-k", "v"],
        "v,count\n\" \"\"1\"\"\",1\n",
        "byte 6 (line 2): blanks before a quote, which belong to the field as the quote does: `--trim` takes them off",
    ),
    (
        "csv",
        "k,v\n\"2\\\" wide\",1\n\"a\\\\\",2\n",
        &["-H", "-k", "k", "-a", "sum:v", "--escape", "\\"],
        "k,sum_v\n\"2\"\" wide\",1\na\\,2\n",
        "",
    ),
    // Columns.
    (
        "csv",
        "k,2017\na,1\na,2\n",
        &["-H", "-k", "k", "-a", "sum:2017"],
        "k,sum_2017\na,3\n",
        "",
    ),
    (
        "txt",
        "010;001;A\n010;001;B;X;Y\n020;002;C;X\n",
        &["-d", ";", "--ragged", "-k", "1", "-a", "count:4,count:5"],
        "key1,count_4,count_5\n010,1,1\n020,1,0\n",
        "",
    ),
];

#[test]
fn a_file_has_one_answer_whatever_reads_it() {
    let dir = dir();
    for (ending, text, flags, answer, said) in CASES {
        let path = write(dir.path(), &format!("f.{ending}"), text.as_bytes());
        let check = |ended: Ended, input: &str, how: &str| {
            let (stdout, stderr) = ended.answer_and_notices();
            let stdout = String::from_utf8_lossy(&stdout);
            assert_eq!(stdout, *answer, "{how}: {text:?}\n{stderr}");
            let said = said.replace("IN", input);
            assert!(stderr.contains(&said), "{how}: {text:?}\n{stderr}");
            assert!(
                !said.is_empty() || stderr.is_empty(),
                "{how}: {text:?}\n{stderr}"
            );
        };
        for way in WAYS.iter() {
            for threads in ["1", "4"] {
                let mut command = ringfold(["aggregate", "-j", threads]);
                let command = command.args(*flags).args(way.flags()).arg(&path);
                check(end(command), str(&path), &format!("{way:?}"));
            }
        }
        let ending_says = *ending == "tsv" && !text.starts_with("\"Source");
        let mut command = ringfold(["aggregate"]);
        let command = command.args(*flags).args(ending_says.then_some("-d\t"));
        let mut child = start(command.stdin(Stdio::piped()));
        feed(&mut child, text.as_bytes().to_vec());
        check(end_of(child), "-", "a pipe");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let packed = write(
            dir.path(),
            &format!("f.{ending}.gz"),
            &gzip.finish().unwrap(),
        );
        let mut command = ringfold(["aggregate"]);
        let command = command.args(*flags).arg(&packed);
        check(end(command), str(&packed), "compressed");
    }
}

/// In large inputs headers come again within blocks and at their edges.
#[test]
fn repeated_headers_are_counted_in_every_block() {
    let dir = dir();
    let rows: String = (0..3000).map(|n| format!("city{},{n}\n", n % 7)).collect();
    let text = format!("city,price\n{rows}").repeat(10);
    let path = write(dir.path(), "f.csv", text.as_bytes());
    let alone = write(
        dir.path(),
        "alone.csv",
        format!("city,price\n{}", rows.repeat(10)).as_bytes(),
    );
    for asked in [
        &["-k", "city"][..],
        &["-k", "city", "-a", "sum:price"],
        &["-a", "count,lexmin:city,distinct:price"],
        &["-k", "city", "--where", "price >= 0 or city = 'city'"],
    ] {
        let mut command = ringfold(["aggregate", "-H", str(&alone)]);
        let want = end(command.args(asked)).answer();
        for way in WAYS.iter() {
            for block in ["4K", "64K"] {
                let mut command = ringfold(["aggregate", "-H", "-j", "3", "-b", block, str(&path)]);
                let ended = end(command.args(asked).args(way.flags()));
                let (got, said) = ended.answer_and_notices();
                assert_eq!(got, want, "{way:?} {asked:?}");
                let place = format!(
                    "9 records are the header again and are left out, the first at {} byte {} line {}:",
                    str(&path),
                    11 + rows.len(),
                    2 + rows.matches('\n').count()
                );
                assert!(said.contains(&place), "{said}");
            }
        }
    }
}

/// A pipe that isn't the first input brings the empty line before its header alone.
#[test]
fn a_further_pipe_may_begin_with_an_empty_line() {
    let dir = dir();
    write(dir.path(), "a.csv", b"k,v\na,5\n");
    let mut command = ringfold(["aggregate", "-H", "-k", "k", "-a", "sum:v", "a.csv", "-"]);
    let mut child = start(command.current_dir(dir.path()).stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    for part in ["\n", "k,v\na,1\nb,2\n"] {
        std::thread::sleep(Duration::from_millis(200));
        stdin.write_all(part.as_bytes()).unwrap();
    }
    drop(stdin);
    assert_eq!(end_of(child).answer(), b"k,sum_v\na,6\nb,2\n");
}

/// Lines are left out as far as there are some, however many are named.
#[test]
fn more_lines_are_skipped_than_there_are() {
    let dir = dir();
    let path = write(dir.path(), "f", b"a,1\nb,2\n");
    let skip = [
        "aggregate",
        "-k",
        "1",
        "--skip-lines",
        "9223372036854775808",
    ];
    assert_eq!(end(ringfold(skip).arg(&path)).answer(), b"key1,count\n");
}

/// What is left out of a pipe has its line, as in a file.
#[test]
fn places_in_pipes_have_their_lines() {
    let rows = "a,1\n".repeat(400_000);
    let text = format!("k,v\n{rows}k,v\n{rows}a,free\n");
    let log = "192.0.2.1 - - [12/Mar/2026:06:25:01 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"c\"\n";
    let longer = [
        &log.repeat(20_000)[..],
        &log.replace("\"c\"", "\"c\" more"),
        log,
    ]
    .concat();
    let longer_args = ["--log", "combined", "-k", "status"];
    for (args, text, place) in [
        (
            &["-k", "k"][..],
            &text,
            "is left out, the first at - byte 1600004 line 400002",
        ),
        (
            &["-a", "count", "--where", "v > 0"],
            &text,
            "left out, because --where can't compare a value, the first at - byte 3200008 line 800003",
        ),
        (
            &longer_args,
            &longer,
            "the first at - byte 1480000 line 20001",
        ),
    ] {
        for more in [&["-j", "1"][..], &["-j", "3"]] {
            let mut command = ringfold([&["aggregate"], args, more].concat());
            let mut child = start(command.stdin(std::process::Stdio::piped()));
            feed(&mut child, text.clone().into_bytes());
            let (_, said) = end_of(child).answer_and_notices();
            assert!(said.contains(place), "{args:?} {said}");
        }
    }
}

/// Bytes of a key that nobody sees are told.
#[test]
fn odd_keys_are_told() {
    let dir = dir();
    let rows = "a,4\r\n".repeat(30);
    for (text, args, want) in [
        (
            "a,1\n\0\0b,2\n".to_string(),
            &["-k", "1"][..],
            r"NUL bytes stand in a key, the first in `\x00\x00b`: `tr -d '\0' <FILE` takes such bytes out",
        ),
        (
            format!("{rows}a,4\r\r\n"),
            &["-k", "2"],
            r"a carriage return stands in a key, the first in `4\r`: `tr -d '\r' <FILE` takes such bytes out",
        ),
    ] {
        let path = write(dir.path(), "f.csv", text.as_bytes());
        let run = |more: &[&str]| {
            let mut command = ringfold([&["aggregate"], args, more].concat());
            end(command.arg(&path)).answer_and_notices().1
        };
        let notice = format!("ringfold: notice: {want}");
        assert_eq!(run(&[]).trim_end(), notice);
        // Also where rows are in a file, or are those of partials.
        let spilled = run(&["--memory", "1"]);
        assert!(spilled.lines().any(|line| line == notice), "{spilled}");
        let partial = dir.path().join("f.part");
        let saved = run(&["--save-partial", partial.to_str().unwrap()]);
        assert_eq!(saved, "");
        let merged = end(ringfold(["merge"]).arg(&partial))
            .answer_and_notices()
            .1;
        assert_eq!(merged.trim_end(), notice);
        std::fs::remove_file(partial).unwrap();
        assert_eq!(run(&["-q"]), "");
        assert_eq!(run(&["--where", "$1 = 'none'"]), "");
    }
}
