//! Any text as a value, as a key, in an aggregate and in a condition, over any rows: it is refused at a place of it, or what the
//! passes give is what single records give.
#![no_main]

mod rows;

use libfuzzer_sys::fuzz_target;
use ringfold::query::{OnError, Query, Refusal};
use ringfold::{BlockError, Config, Error, Fold, Input, Level, PaddedBuf};
use rows::rows_of;

/// Words that bytes stand for, so that many texts are expressions.
const WORDS: [&str; 72] = [
    "$1", "$2", "$3", "$1", "$2", "(", ")", ",", "+", "-", "*", "/", "%", "||", "=", "<", ">=", "~", "!=", " and ", " or ",
    " not ", " in ", " between ", " like ", " is null", "case when ", " then ", " else ", " end", "if(", "1", "2.5", "-0.01",
    "1e9", "'a'", "'2026-03-12 06:25'", "'[a-z]+'", "''", "abs(", "round(", "floor(", "least(", "bin(", "log_bin(", "pow(",
    "sqrt(", "lower(", "length(", "left(", "substr(", "replace(", "split(", "trim(", "concat(", "coalesce(", "nullif(",
    "regexp_extract(", "url_path(", "ip_prefix(", "year(", "epoch(", "date_trunc('hour',", "time_bucket('7 days',", "hour(",
    "weekday(", "time_bucket('5 minutes',", ", 'Asia/Kathmandu')", ", 'Australia/Lord_Howe')", "@hour[America/St_Johns]", "@5m[+05:30]",
    "$3@day",
];

/// The answer at a level, or what is wrong with the first record; blocks have so many lines, or all.
fn answer(query: &Query, level: Option<Level>, text: &[u8], lines: usize) -> Result<(Vec<String>, [u64; 3]), String> {
    let (input, config) = (Input::memory([text]), Config::default());
    let plan = query.clone().level(level).plan(&input, &config).map_err(|error| error.to_string())?;
    let mut partial = plan.partial();
    let all: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let mut at = 0;
    for block in all.chunks(if lines == 0 { all.len() } else { lines }) {
        let block = block.concat();
        match plan.block(&mut partial, &PaddedBuf::from(&block[..]).block(0, at as u64, 0)) {
            Ok(()) => {}
            Err(BlockError::Malformed(bad)) => return Err(format!("{} {} {}", at + bad.start, at + bad.end, bad.cause)),
            Err(BlockError::Sink(error)) => panic!("{error}"),
        }
        at += block.len();
    }
    let answer = plan.finish(partial);
    Ok((rows_of(&answer), [answer.rows, answer.filtered, answer.unread]))
}

/// Whatever is refused is so at a place of the text.
fn refused(error: &Error) {
    if let Some(Refusal::Condition { text, at, .. }) = error.job() {
        assert!(text.is_char_boundary(*at), "{text:?} {at}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[form, lenient], data)) = data.split_at_checked(2).map(|(two, rest)| (two.first_chunk().unwrap(), rest)) else {
        return;
    };
    let end = data.iter().position(|&byte| byte == 0xff).unwrap_or(data.len());
    let mut text = String::new();
    for &byte in &data[..end] {
        match WORDS.get(usize::from(byte)) {
            Some(word) => text += word,
            None => text.push(char::from(byte)),
        }
    }
    let mut lines = b"7,abc,2026-03-12T06:25:01Z\n2.50,/a?b=1,\n".to_vec();
    lines.extend_from_slice(data.get(end + 1..).unwrap_or_default());
    // Quoted fields may hold newlines, so they stand in one block.
    let is_quoted = lenient & 64 != 0;
    let lines_of_block = if is_quoted { 0 } else { usize::from(lenient >> 3 & 3) };
    let query = Query::new(b',').quote(is_quoted.then_some(b'"')).header(false).ragged(true);
    let query = query.on_error([OnError::Fail, OnError::Skip, OnError::Null][usize::from(lenient % 3)]);
    // The text as a part of several expressions.
    let shared: [fn(Query, &str) -> Result<Query, Error>; 4] = [
        |query, text| query.filter(&format!("({text}) > 1")),
        |query, text| query.aggregate_text(&format!("sum(if(({text}) > 2, $1, 1))")),
        |query, text| query.key_text(&format!("({text}) * 2")),
        |query, text| query.aggregate_text(&format!("max(({text}) + 0.5)")),
    ];
    let mut added = shared.iter().enumerate().filter(|(at, _)| form >> (3 + at) & 1 == 1);
    let query = match added.try_fold(query, |query, (_, add)| add(query, &text)) {
        Ok(query) => query,
        Err(error) => return refused(&error),
    };
    let query = match form % 10 {
        0 => query.key_text(&text),
        1 => query.aggregate_text(&format!("sum({text})")),
        2 => query.aggregate_text(&format!("first({text})")),
        3 => query.filter(&text),
        4 => query.aggregate_text(&format!("corr({text})")),
        5 => query.aggregate_text(&format!("arg_max({text})")),
        6 => query.aggregate_text(&format!("distinct({text})")),
        7 => query.aggregate_text(&format!("top({text})")),
        8 => query.aggregate_text(&format!("histogram({text})")),
        _ => query.aggregate_text(&format!("iqr($1) + weighted_mean($2, $1) filter (where {text})")),
    };
    let query = match query {
        Ok(query) => query,
        Err(error) => return refused(&error),
    };
    let query = match form / 10 % 3 {
        0 => query,
        1 => query.time_zone("Europe/Berlin").unwrap(),
        _ => query.time_zone("Australia/Lord_Howe").unwrap().input_time_zone("UTC").unwrap(),
    };
    let want = answer(&query, None, &lines, lines_of_block);
    for level in Level::available() {
        assert_eq!(answer(&query, Some(level), &lines, lines_of_block), want, "{text}");
    }
});
