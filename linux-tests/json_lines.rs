//! JSON lines in every engine, against the naive group-by that knows the rows and not the text.

use proptest::test_runner::{Config as Cases, TestRunner};
use ringfold::query::Query;
use ringfold::{Config, Input, fold};

use crate::catalogue::are_all_wanted;
use crate::query::{Row, Style, answer, everything_of, printed, reference, refused, tables};
use crate::support::{dir, end, ringfold, ways_in_small_blocks, write};

/// A string as JSON may have it; `escapes` says whether also what needs none is escaped.
fn string(text: &str, escapes: bool) -> String {
    let mut string = "\"".to_string();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => string.extend(['\\', letter]),
            '\n' => string += "\\n",
            '\r' => string += "\\u000D",
            letter if escapes && letter.is_ascii() => {
                string += &format!("\\u{:04x}", u32::from(letter));
            }
            letter => string.push(letter),
        }
    }
    string + "\""
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = digits.split('.').next().unwrap();
    let parts_are_digits = digits
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    parts_are_digits && digits.split('.').count() < 3 && (whole == "0" || !whole.starts_with('0'))
}

/// The rows as JSON lines. The style's quotes say where there is more than need be: escapes, blanks, other keys, keys that
/// come twice, nulls instead of nothing.
fn lines(rows: &[Row], style: &Style) -> Vec<u8> {
    let mut text = if style.marked {
        "\u{feff}".to_string()
    } else {
        String::new()
    };
    let end = if style.carriage { "\r\n" } else { "\n" };
    let mut odds = style.quotes.iter().cycle();
    let mut odd = || *odds.next().unwrap();
    for (number, row) in rows.iter().enumerate() {
        let mut members = Vec::new();
        for (name, field) in ["one", "two", "number", "text, any"].iter().zip(row) {
            let field = std::str::from_utf8(field).unwrap();
            let name = string(name, odd());
            if odd() {
                members.push(format!("{name}:[\"left\",{{\"one\":\"out\"}}]"));
            }
            let value = match field {
                "" if odd() => continue,
                "" if odd() => "null".into(),
                field if is_number(field) && !odd() => field.to_string(),
                field => string(field, odd()),
            };
            members.push(match odd() {
                true => format!("{name} : {value} "),
                false => format!("{name}:{value}"),
            });
            if odd() {
                members.push("\"more\": {\"one\": [1e3, {}, []], \"b\": false}".into());
            }
        }
        // Where the value isn't there the last key that is counts.
        let last = |name: &str, members: &[String]| {
            let of_it = |member: &&String| member.starts_with(name);
            members.iter().rfind(of_it).cloned()
        };
        for name in ["one", "two", "number", "text, any"] {
            for name in [string(name, false), string(name, true)] {
                if let Some(member) = last(&name, &members)
                    && member.contains("[\"left\"")
                {
                    members.push(format!("{name}:\"\""));
                }
            }
        }
        text += &format!("{{{}}}{end}", members.join(","));
        if style.empty[number % style.empty.len()] {
            text += end;
        }
    }
    if !style.last_end {
        text.truncate(text.trim_end().len());
    }
    text.into_bytes()
}

#[test]
fn random_lines_in_every_engine() {
    let dir = dir();
    let mut runner = TestRunner::new(Cases {
        cases: if are_all_wanted() { 12 } else { 3 },
        failure_persistence: None,
        ..Cases::default()
    });
    let query = everything_of(Query::json_lines());
    let tested = runner.run(
        &(tables(), tables()),
        |((first, style), (second, other))| {
            let paths = [
                write(dir.path(), "first.jsonl", &lines(&first, &style)),
                write(dir.path(), "second.jsonl", &lines(&second, &other)),
            ];
            let want = reference(&[first, second].concat());
            for (way, config) in ways_in_small_blocks() {
                let input = Input::open(&paths).unwrap();
                let got = answer(&query, &input, &config).unwrap();
                let (block, threads) = (config.block_size, config.threads);
                proptest::prop_assert_eq!(&got, &want, "{:?} {:?} {:?}", way, block, threads);
            }
            Ok(())
        },
    );
    tested.unwrap();
}

/// What is malformed behind a good line, its bytes and words of the error.
const MALFORMED: [(&str, std::ops::Range<u64>, &str); 14] = [
    ("[{\"a\":1}]", 8..17, "isn't a JSON object"),
    ("{\"a\":1} {}", 16..18, "something follows the object"),
    ("{\"a\":1", 8..14, "the line ends before its object does"),
    ("{\"a\" 1}", 13..15, "a colon is expected"),
    ("{a:1}", 9..13, "a key in double quotes is expected"),
    ("{\"a\":1,}", 15..16, "a key in double quotes is expected"),
    (
        "{\"b\":\"x}",
        13..16,
        "the string that opens here isn't closed in its line",
    ),
    ("{\"b\":\"\\x\"}", 14..18, "no such escape"),
    ("{\"b\":\"\t\"}", 14..17, "control character"),
    ("{\"b\":01}", 13..16, "isn't a number"),
    ("{\"b\":[1,2}}", 17..19, "a comma or `]` is expected"),
    ("{\"b\":nul}", 13..17, "a value is expected"),
    ("{\"b\":{\"c\":}}", 18..20, "a value is expected"),
    ("{\"a\":\"x\"}", 8..17, "`x` is not a number (column `a`)"),
];

#[test]
fn malformed_lines_are_told_in_every_engine() {
    let dir = dir();
    let query = Query::json_lines()
        .aggregate("sum", Some("a".into()))
        .unwrap();
    for (line, bytes, words) in MALFORMED {
        for end in ["\n", "\r\n", "\n{\"a\":3}\n{bad}\n"] {
            let text = format!("{{\"a\":1}}\n{line}{end}");
            let path = write(dir.path(), "bad", text.as_bytes());
            for (way, config) in ways_in_small_blocks() {
                let input = Input::open([&path]).unwrap();
                let error = answer(&query, &input, &config).unwrap_err();
                assert_eq!(error.bytes(), Some(bytes.clone()), "{way:?} {line} {error}");
                assert_eq!(error.line(), Some(2), "{way:?} {line} {error}");
                assert!(error.to_string().contains(words), "{error}");
            }
        }
        // It costs one record.
        let path = write(
            dir.path(),
            "bad",
            format!("{{\"a\":1}}\n{line}\n{{\"a\":3}}").as_bytes(),
        );
        let input = Input::open([&path]).unwrap();
        let query = query.clone().on_error(ringfold::query::OnError::Skip);
        let config = Config::default();
        let (answer, _) = fold(&input, &config, &query.plan(&input, &config).unwrap()).unwrap();
        assert_eq!((answer.rows, answer.skipped), (2, 1), "{line}");
    }
}

#[test]
fn what_the_program_says() {
    let dir = dir();
    let text = "{\"user\":{\"id\":7,\"name\":\"ann\"},\"ms\":1.5}\n\n{\"user\":{\"id\":8},\"ms\":2e1,\"http.status\":404}\n";
    let (said, other) = ("events.jsonl", "events");
    write(dir.path(), said, text.as_bytes());
    write(dir.path(), other, text.as_bytes());
    for (args, want) in [
        (
            &["-k", "user.id", "-a", "sum:ms", said][..],
            "user.id,sum_ms\n7,1.5\n8,20.0\n",
        ),
        (
            &["--jsonl", "-k", "user.name", "-a", "count", other],
            "user.name,count\n\"\",1\nann,1\n",
        ),
        (
            &["-k", "http.status", "--where", "user.id >= 8", said],
            "http.status,count\n404,1\n",
        ),
        (&["-a", "count", said], "count\n2\n"),
        (
            &["-k", "user", "--where", "ms < 2", said],
            "user,count\n\"{\"\"id\"\":7,\"\"name\"\":\"\"ann\"\"}\",1\n",
        ),
    ] {
        assert_eq!(printed(dir.path(), args), want, "{args:?}");
    }
    for (args, words) in [
        (
            &["-k", "user.id", other][..],
            "events: the first record is a JSON object: --jsonl reads JSON lines",
        ),
        (
            &["-k", "1", said],
            "columns of JSON lines have names and no numbers",
        ),
        (&["-H", "-k", "user", said], "--header says otherwise"),
        (
            &["--jsonl", "-d", ",", "-k", "user", other],
            "--jsonl says how lines are written, and so does --delimiter",
        ),
        (
            &["--jsonl", "--log", "common", "-k", "user", other],
            "--log says how lines are written, and so does --jsonl",
        ),
    ] {
        let error = refused(dir.path(), args, 2);
        assert!(error.contains(words), "{args:?}: {error}");
    }
    let mut command = ringfold(["aggregate", "-k", "user", "--where", "$2 > 1", said]);
    let ended = command.current_dir(dir.path()).output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        error.contains("column 1: columns of JSON lines have names"),
        "{error}"
    );
    let mut command = ringfold(["aggregate", "-k", "user.nam", said]);
    let (_, notices) = end(command.current_dir(dir.path())).answer_and_notices();
    assert!(notices.contains("did you mean `user.name`?"), "{notices}");
}
