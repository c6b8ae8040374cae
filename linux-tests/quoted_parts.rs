//! Parts of files in whose quoted fields newlines stand: what is merged is what one run over everything gives, or an error that
//! says which part is to be read again, and how.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use ringfold::query::{Hint, OnError, Partial, Query, Refusal, Shown};
use ringfold::{Begin, Config, Error, Input, Receipt, Result, fold};

use crate::catalogue::drawn;
use crate::support::{Ended, cached_ways, csv, dir, end, ringfold, write};

fn run(query: &Query, input: &Input, config: &Config) -> Result<(String, Vec<u8>)> {
    let plan = query.plan(input, config)?;
    let receipt = Receipt::of(input)?;
    let (answer, _) = fold(input, config, &plan)?;
    let mut saved = Vec::new();
    answer.save(&plan, &receipt, &mut saved).unwrap();
    Ok((csv(&answer), saved))
}

/// Which parts are to be read again, and how.
fn wrong_parts(error: &Error) -> Vec<(u32, Begin)> {
    let Some(Refusal::WrongParts(wrong)) = error.job() else {
        panic!("{error}");
    };
    wrong
        .iter()
        .map(|wrong| (wrong.part, wrong.begin))
        .collect()
}

/// Runs every part by itself and again as errors say, as a scheduler does. Returns answer and partial of all, and how many parts
/// were run again.
fn in_parts(
    query: &Query,
    input: &Input,
    parts: u32,
    config: &Config,
) -> Result<(String, Vec<u8>, usize)> {
    let one = |part: u32, begin: Option<Begin>| {
        let input = input.clone().part(part, parts).unwrap();
        let input = begin.map_or(Ok(input.clone()), |begin| input.begin(begin));
        let read = input.and_then(|input| run(query, &input, config));
        read.map(|(_, saved)| Partial::read(&format!("part {part}"), saved).unwrap())
    };
    let mut again = 0;
    let mut saved = Vec::new();
    for part in 1..=parts {
        let first = one(part, None);
        saved.push(match first {
            Err(error) => match error.job() {
                Some(Refusal::Malformed {
                    hint: Hint::Begin(begin),
                    ..
                }) => {
                    again += 1;
                    let other = match begin {
                        Begin::Quoted => Begin::Unquoted,
                        _ => Begin::Quoted,
                    };
                    one(part, Some(other))?
                }
                _ => return Err(error),
            },
            Ok(saved) => saved,
        });
    }
    loop {
        match Partial::merge(&saved) {
            Ok(merged) => {
                let mut bytes = Vec::new();
                merged.save(&mut bytes).unwrap();
                return Ok((csv(&merged.answer(&Shown::default())?), bytes, again));
            }
            Err(error) => {
                for (part, begin) in wrong_parts(&error) {
                    again += 1;
                    assert!(again < 3 * parts as usize, "{error}");
                    saved[part as usize - 1] = one(part, Some(begin))?;
                }
            }
        }
    }
}

fn query() -> Query {
    let query = Query::new(b',').quote(Some(b'"')).header(true).ragged(true);
    let query = query.key(1).aggregate("count", None).unwrap();
    let query = query.aggregate("first", Some(2.into())).unwrap();
    let query = query.aggregate("last", Some(2.into())).unwrap();
    query.aggregate("lexmax", Some(3.into())).unwrap()
}

const HEADERS: [&str; 3] = ["k,v,w\n", "\"k\nx\",\"v\"\"\n\n\",w\n", "\"k\",v,w\r\n"];

fn text() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec![
        "a",
        "b",
        "",
        "\"quoted\"",
        "\"with, comma\"",
        "\"two\nlines\"",
        "\"two\r\nlines\"",
        "\"a \"\"word\"\" doubled\"",
        "\"\"\"\"",
        "\"\"\"\n\"\"\"",
        "\"\n\n,\n\"",
        "\"\"",
        "\"a,b\nc,d\ne,\"\"f\"\"\n\"",
        "5\" plain",
    ]);
    let end = prop::sample::select(vec!["\n", "\r\n", "\n\n"]);
    let record =
        (prop::collection::vec(field, 1..4), end).prop_map(|(fields, end)| fields.join(",") + end);
    let long = (1..60_usize).prop_map(|lines| format!("\"{}\",a\n", "x\n".repeat(lines)));
    let plain = (1..40_usize).prop_map(|lines| "a,b,c\n".repeat(lines));
    let records = prop::collection::vec(prop_oneof![12 => record, 1 => long, 1 => plain], 0..30);
    let header = prop::sample::select(HEADERS.to_vec());
    (header, records).prop_map(|(header, records)| header.to_owned() + &records.concat())
}

/// Random files, cut anywhere and into more parts than they have records, by every engine.
#[test]
fn parts_are_what_the_whole_is() {
    let ways: Vec<_> = cached_ways().collect();
    let strategy = (
        prop::collection::vec(text(), 1..4),
        prop_oneof![4 => 2..14_u32, 1 => 14..200_u32],
        0..ways.len(),
        prop::sample::select(vec![1, 2, 3, 7, 64, 1000]),
        prop::sample::select(vec!["", "note\nsay \"x\"\n", "\u{feff}"]),
    );
    let cases = Cases {
        cases: drawn(60, 200),
        failure_persistence: None,
        ..Cases::default()
    };
    let done = TestRunner::new(cases).run(&strategy, |(mut texts, parts, way, block, before)| {
        // One header for all files, and each file another one.
        let first = HEADERS
            .iter()
            .find(|name| texts[0].starts_with(**name))
            .unwrap();
        for (at, text) in texts.iter_mut().enumerate() {
            let own = HEADERS
                .iter()
                .find(|name| text.starts_with(**name))
                .unwrap();
            *text = format!("{before}{first}{}f{at},\n", &text[own.len()..]);
        }
        let dir = dir();
        let files = (0..).zip(&texts);
        let files: Vec<PathBuf> = files
            .map(|(at, text)| write(dir.path(), &format!("{at}.csv"), text.as_bytes()))
            .collect();
        let query = query().skip_lines(if before.starts_with("note") { 2 } else { 0 });
        let config = Config {
            block_size: Some(block),
            threads: Some(2),
            ..ways[way].config()
        };
        let input = Input::open(&files).unwrap();
        let (want, whole) = run(&query, &input, &Config::default()).unwrap();
        let (got, saved, again) = in_parts(&query, &input, parts, &config).unwrap();
        prop_assert_eq!(&got, &want);
        prop_assert!(saved == whole);
        prop_assert!(again <= 2 * parts as usize);
        Ok(())
    });
    done.unwrap();
}

/// Between the quotes stands what looks like records.
const TRIPS: &str = "city,route\nBern,\"Kiel,Oslo\nOslo,Rom\nRom,Bern\"\nKiel,none\n";

fn program(dir: &Path, args: &str) -> Ended {
    end(ringfold(args.split(' ')).current_dir(dir))
}

/// A part that began at a wrong byte is found in any shard, whatever the order.
#[test]
fn each_shard_is_checked() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "t.csv", TRIPS.as_bytes());
    for (name, range) in [("a", "1/2"), ("bad", "2/2"), ("good", "2/2 --begin 46")] {
        let args = format!("aggregate -k city --range {range} --save-partial {name}.part t.csv");
        assert_eq!(program(dir, &args).code, Some(0));
        for shard in [1, 2] {
            let args = format!("merge --keys {shard}/2 --save-partial {name}.{shard} {name}.part");
            assert_eq!(program(dir, &args).code, Some(0));
        }
    }
    for all in [
        "a.1 a.2 good.1 bad.2",
        "a.2 a.1 good.1 bad.2",
        "bad.2 good.1 a.1 a.2",
    ] {
        let error = program(dir, &format!("merge {all}")).failure(1);
        assert!(error.ends_with("`--range 2/2 --begin 46`"), "{error}");
    }
    let all = program(dir, "merge a.2 good.1 a.1 good.2").answer();
    assert_eq!(all, b"city,count\nBern,1\nKiel,1\n");
}

#[test]
fn merge_names_the_flags_to_run_a_part_again_with() {
    let dir = dir();
    let dir = dir.path();
    write(dir, "t.csv", TRIPS.as_bytes());
    let part = |part: u32, more: &str| {
        let args =
            format!("aggregate -k city --range {part}/4{more} --save-partial {part}.part t.csv");
        program(dir, &args)
    };
    for at in 1..=4 {
        let ended = part(at, "");
        assert_eq!(ended.answer_and_notices(), (vec![], String::new()));
    }
    let merge = |args: &str| program(dir, &format!("merge {args}"));
    let all = "1.part 2.part 3.part 4.part";
    let error = merge(all).failure(1);
    assert_eq!(
        error,
        "3.part: part 3 of 4 was read from the wrong byte of t.csv on: run it again with `--range 3/4 --begin 46`"
    );
    // Parts that were merged are checked when the one before them is there; it needn't be all of them.
    let notice = merge("--save-partial late 3.part 4.part")
        .answer_and_notices()
        .1;
    assert!(
        notice.contains("parts 1, 2 of 4 are missing")
            && notice.contains("parts 3, 4 of 4 may begin within a quoted field"),
        "{notice}"
    );
    let notice = merge("--save-partial early 1.part 2.part")
        .answer_and_notices()
        .1;
    assert!(!notice.contains("may begin"), "{notice}");
    let error = merge("early late").failure(1);
    assert!(
        error.ends_with(
            "`--range 3/4 --begin 46`, and merge it anew with the other parts of that partial"
        ),
        "{error}"
    );
    part(3, " --begin 46").answer();
    let want = "city,count\nBern,1\nKiel,1\n";
    assert_eq!(merge(all).answer(), want.as_bytes());
    // It says the same in another way, and what was right may be said, too.
    part(3, " --begin quoted").answer();
    part(4, " --begin unquoted").answer();
    assert_eq!(
        merge("4.part 2.part 3.part 1.part").answer(),
        want.as_bytes()
    );
    // Whatever is said, it is checked.
    for wrong in ["50", "56"] {
        part(4, &format!(" --begin {wrong}")).answer();
        let error = merge(all).failure(1);
        assert!(error.ends_with("`--range 4/4 --begin 46`"), "{error}");
    }
}

#[test]
fn a_part_begins_as_its_first_records_look() {
    let dir = dir();
    let dir = dir.path();
    // Outside quotes these are no records.
    let text = "k,v\na,\"b\nwords, more, words\nb\"\nc,d\n".to_owned() + &"e,f\n".repeat(20);
    write(dir, "f.csv", text.as_bytes());
    for part in 1..=14 {
        let args = format!("aggregate -k k --range {part}/14 --save-partial {part}.part f.csv");
        program(dir, &args).answer();
    }
    let all: Vec<String> = (1..=14).map(|part| format!("{part}.part")).collect();
    let got = program(dir, &format!("merge {}", all.join(" "))).answer();
    assert_eq!(got, b"k,count\na,1\nc,1\ne,20\n");
    // A part that isn't kept is never checked.
    let (_, notice) = program(dir, "aggregate -k k --range 2/14 f.csv").answer_and_notices();
    assert!(
        notice.contains("as if it began within a quoted field"),
        "{notice}"
    );
    let (_, notice) = program(dir, "aggregate -k k --range 8/14 f.csv").answer_and_notices();
    assert!(notice.contains("as if it began outside quotes"), "{notice}");
}

#[test]
fn an_error_of_a_part_says_that_it_may_begin_otherwise() {
    let dir = dir();
    let dir = dir.path();
    let said = "this part was read as if it began outside quotes: if it begins within a quoted field, `--begin quoted` reads it";
    let lines = "Oslo,Rom\n".repeat(9);
    for (text, args, why) in [
        (
            "k,v\na,\"b\nc,\"\"d\"\"\nb\"\nc,d\ne,f,g\n".to_owned(),
            "--range 4/10",
            "the quote that opens here is closed",
        ),
        // Wrong is what follows many records that look right.
        (
            format!("k,v\na,\"b\n{lines}x,\"\"y\"\"\n\"\n"),
            "--range 2/2",
            "the quote that opens here is closed",
        ),
        (
            "k,v\na,b\nc,d,e\nf,g\n\"h\",i,j\n".to_owned(),
            "--range 2/3 --begin unquoted",
            "3 fields where the header has 2",
        ),
    ] {
        write(dir, "f.csv", text.as_bytes());
        let error = program(dir, &format!("aggregate -k k {args} f.csv")).failure(1);
        assert!(error.contains(why) && error.ends_with(said), "{error}");
    }
    write(dir, "f.csv", b"k,v\na,b\nc,d\n\"p\nq,s,t\",r\nx,y\n");
    let error = program(dir, "aggregate -k k --range 2/3 --begin quoted f.csv").failure(1);
    assert!(error.ends_with("`--begin unquoted` reads it"), "{error}");
    // Behind a place where both are the same, and where nothing looks wrong before, an error is what it says.
    let quoted = "\"a\",\"b\"\n".repeat(9);
    for text in [
        format!("k,v\n{quoted}{quoted}c,\"d\"e\n{quoted}"),
        format!("k,v\n{}c,d,e\na,b\n", "a,b\n".repeat(99)),
    ] {
        write(dir, "f.csv", text.as_bytes());
        let error = program(dir, "aggregate -k k --range 2/2 f.csv").failure(1);
        assert!(!error.contains("--begin"), "{error}");
    }
}

/// What can't be understood is left out as in one run, or it is an error: not something else.
#[test]
fn malformed_quotes_are_left_out_in_parts_as_in_one_run() {
    let pieces = [
        "a,b,c\n",
        "\"a\"x,b\n",
        "\"two\nlines\",b,c\n",
        "\"open,b\n",
        "b,\"c\"\"\nd\"e,f\n",
        "\"\",\"\n\",x\n",
        "# \"c,\"\n",
        "c,d\n",
        "\"q\",\"r\"\n",
    ];
    let strategy = (
        prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..25),
        2..9_u32,
        any::<bool>(),
    );
    let cases = Cases {
        cases: drawn(150, 400),
        failure_persistence: None,
        ..Cases::default()
    };
    let divided = std::cell::Cell::new(0);
    let done = TestRunner::new(cases).run(&strategy, |(pieces, parts, comments)| {
        let text = format!("k,v,w\n{}", pieces.concat());
        let input = Input::memory([text.as_bytes()]);
        let mut query = query().on_error(OnError::Skip);
        if comments {
            query = query.comment(b"#");
        }
        let config = Config::default();
        let (want, whole) = run(&query, &input, &config).unwrap();
        match in_parts(&query, &input, parts, &config) {
            Ok((got, saved, _)) => {
                divided.set(divided.get() + 1);
                prop_assert_eq!(&got, &want);
                prop_assert!(saved == whole);
            }
            Err(error) => {
                let hint = match error.job() {
                    Some(Refusal::Malformed { hint, .. }) => *hint,
                    other => panic!("{error}: {other:?}"),
                };
                prop_assert!(
                    matches!(hint, Hint::SingleLine | Hint::Begin(_)),
                    "{}",
                    error
                );
            }
        }
        Ok(())
    });
    done.unwrap();
    assert!(divided.get() > 30, "{}", divided.get());
}

/// Parts that version 2 of the format has kept are read as then. The files in partials/v2 stay as they are.
#[test]
fn files_of_version_2_are_read() {
    let v2 = Path::new(env!("CARGO_MANIFEST_DIR")).join("linux-tests/partials/v2");
    assert_eq!(
        std::fs::read_to_string(v2.join("trips.csv")).unwrap(),
        TRIPS
    );
    let got = program(&v2, "merge 2.part 1.part").answer();
    assert_eq!(got, b"city,count\nBern,1\nKiel,1\n");
    let error = program(&v2, "merge 1.part wrong.part").failure(1);
    assert!(error.ends_with("`--range 2/2 --begin 46`"), "{error}");
    for (name, place) in [
        ("1.part", "byte 0-28, part 1 of 2, records of byte 0-46"),
        ("2.part", "byte 28-56, part 2 of 2, records of byte 46-56"),
    ] {
        let told = program(&v2, &format!("inspect {name}")).answer();
        let told = String::from_utf8(told).unwrap();
        assert!(
            told.contains("partial, version 2\n") && told.contains(place),
            "{told}"
        );
    }
}
