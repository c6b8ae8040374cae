//! Answers that may change only on purpose: small files and command lines, with what the program printed for each when it
//! was last looked at, kept in linux-tests/golden/.
//!
//! Each line of [`LINES`] has a file there, and each file that it is asked about a section: stdout after `| `, stderr after
//! `! `, and the exit code after `= ` unless it is 0. With `RINGFOLD_GOLDEN=write` the test writes them anew; `git diff` then
//! shows what changed.

mod files;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{cached_ways, dir, end, program, write};

/// Set to have the answers written anew.
const GOLDEN: &str = "RINGFOLD_GOLDEN";

/// Which files a line is asked about.
#[derive(Clone, Copy)]
enum Of {
    Pairs,
    Tables,
    All,
    Some(&'static [&'static str]),
}
use Of::{All, Pairs, Some as These, Tables};

/// What differs by its bytes rather than by its numbers.
const SOME: Of = These(&[
    "odd-keys",
    "nul-keys",
    "many-keys",
    "crlf",
    "no-last-newline",
    "empty",
    "blank-lines",
    "bom",
    "hole",
    "bad-values",
    "orders.csv",
    "orders.csv.gz",
    "cut.csv.gz",
    "ragged.csv",
    "semicolons.csv",
    "quote.csv",
    "wide.tsv",
    "access.log",
    "events.jsonl",
]);

/// All aggregates of column 2.
const EVERY: &str = "count,count:2,sum:2,min:2,max:2,mean:2,range:2,var:2,stddev:2,var_pop:2,stddev_pop:2,first:2,last:2,\
                     lexmin:2,lexmax:2,median:2,p10:2,p99.9:2,distinct:2,mode:2";

/// The name of the file of answers, and a line for the shell, in which `FILE` is the file, `WAY` flags that change no answer,
/// and `EVERY` all aggregates.
const LINES: &[(&str, Of, &str)] = &[
    ("plain", All, "ringfold aggregate WAY FILE"),
    (
        "plain-hovinen",
        Pairs,
        "ringfold aggregate WAY -f hovinen FILE",
    ),
    (
        "plain-lines",
        Pairs,
        "cat FILE | ringfold aggregate WAY -f lines",
    ),
    (
        "plain-csv",
        These(&["tenths", "orders.csv"]),
        "ringfold aggregate WAY -f csv FILE",
    ),
    (
        "plain-skip",
        All,
        "ringfold aggregate WAY --on-error skip FILE",
    ),
    (
        "plain-max-errors",
        These(&["bad-middle", "bad-values"]),
        "ringfold aggregate WAY --max-errors 2 FILE",
    ),
    (
        "plain-max-record",
        Pairs,
        "ringfold aggregate WAY --max-record 40 --on-error skip -f lines < FILE",
    ),
    (
        "plain-memory",
        Pairs,
        "ringfold aggregate WAY --memory 1K -q FILE",
    ),
    ("plain-two", Pairs, "ringfold aggregate WAY tenths FILE"),
    ("plain-delimiter", SOME, "ringfold aggregate WAY -d , FILE"),
    (
        "query",
        Pairs,
        "ringfold aggregate WAY -d ';' -k 1 -a min:2,mean:2,max:2 FILE",
    ),
    (
        "query-every",
        Pairs,
        "ringfold aggregate WAY -d ';' -k 1 -a EVERY -f ndjson FILE",
    ),
    (
        "query-whole",
        Pairs,
        "ringfold aggregate WAY -d ';' -a EVERY -f json < FILE",
    ),
    (
        "query-by-number",
        Pairs,
        "ringfold aggregate WAY -d ';' -k 2 --top 12 -f tsv FILE",
    ),
    (
        "query-null",
        Pairs,
        "ringfold aggregate WAY -d ';' --on-error null -k 1 -a count:2,sum:2,mean:2 FILE",
    ),
    (
        "query-where",
        Pairs,
        "ringfold aggregate WAY -d ';' -k 1 --where '$2 > 1.5 and $1 != '\\''a'\\' FILE",
    ),
    (
        "query-sort",
        Pairs,
        "ringfold aggregate WAY -d ';' -k 1 -a count,sum:2,mean:2 --sort mean:desc,town --top 5 --precision 2 \
         --as town,n,total,mean -f table FILE",
    ),
    (
        "query-having",
        Pairs,
        "ringfold aggregate WAY -d ';' -k 1 -a count,mean:2 --having 'count >= 2 and mean_2 < 10' -f markdown FILE",
    ),
    (
        "query-skip",
        Pairs,
        "ringfold aggregate WAY -d ';' --rejects r -k 1 -a sum:2,last:2 FILE; echo $?; cat r 2>/dev/null",
    ),
    (
        "query-float",
        Pairs,
        "ringfold aggregate WAY -d ';' --float -k 1 -a min:2,mean:2,max:2,sum:2,stddev:2 FILE",
    ),
    (
        "query-approximate",
        Pairs,
        "ringfold aggregate WAY -d ';' --approximate -k 1 -a median:2,p90:2,distinct:2 FILE",
    ),
    (
        "query-memory",
        Pairs,
        "ringfold aggregate WAY -d ';' --memory 1K -q -k 1 -a mean:2,median:2,mode:2 FILE",
    ),
    (
        "query-merge",
        Pairs,
        "for n in 3 1 2; do ringfold aggregate WAY -d ';' --range $n/3 -k 1 -a EVERY --save-partial p$n FILE || exit; done; \
         ringfold aggregate WAY -d ';' -k 1 -a EVERY -f ndjson FILE >r; ringfold merge -f ndjson p1 p2 p3 | cmp -s - r && echo equal",
    ),
    (
        "query-two",
        Pairs,
        "ringfold aggregate WAY -d ';' -k 1 -a count,first:2,last:2,sum:2 FILE tenths",
    ),
    (
        "query-header",
        Pairs,
        "ringfold aggregate WAY -d ';' -H -k 1 -a count FILE",
    ),
    (
        "query-explain",
        SOME,
        "ringfold aggregate WAY --explain -k 1 -a max:2,mean:2 FILE",
    ),
    ("overview", All, "ringfold WAY FILE"),
    (
        "describe",
        Tables,
        "ringfold describe WAY -f table FILE; ringfold describe WAY -q -f table --ascii --where '$1 is not null' FILE | tail -n +5",
    ),
    (
        "describe-every",
        SOME,
        "ringfold describe WAY -f ndjson < FILE",
    ),
    (
        "count",
        All,
        "ringfold count WAY FILE; ringfold count WAY -z -l FILE tenths",
    ),
    ("quote", SOME, "ringfold quote WAY FILE"),
    (
        "quote-posix",
        SOME,
        "ringfold quote WAY -z --shell posix --out-delimiter null < FILE",
    ),
    ("table", Tables, "ringfold aggregate WAY -k 1 FILE"),
    (
        "table-stdin",
        Tables,
        "cat FILE | ringfold aggregate WAY -k 1",
    ),
    (
        "table-every",
        Tables,
        "ringfold aggregate WAY -H --on-error null -k 1 -a EVERY -f json FILE",
    ),
    (
        "table-sum",
        Tables,
        "ringfold aggregate WAY -H -k 1 -a sum:2,mean:2 FILE",
    ),
    (
        "table-whole",
        Tables,
        "ringfold aggregate WAY --no-header -a count,count:2,distinct:1,lexmax:2 -f tsv FILE",
    ),
    (
        "table-skip",
        Tables,
        "ringfold aggregate WAY --rejects r -k 1 -a sum:2 FILE; echo $?; cat r 2>/dev/null",
    ),
    (
        "table-ragged",
        Tables,
        "ringfold aggregate WAY -d , --ragged --quote none -k 2,1 -f markdown FILE",
    ),
    (
        "table-lines",
        Tables,
        "ringfold aggregate WAY -d , --single-line --trim -k 1 -a count,last:2 -f table FILE",
    ),
    (
        "table-where",
        Tables,
        "ringfold aggregate WAY -H -k 1 --where '$2 > 1 or $2 is null' FILE",
    ),
    (
        "table-null",
        Tables,
        "ringfold aggregate WAY -H --null-value NA --null-value NULL -k 1 -a count:2,max:2,mode:2 FILE",
    ),
    (
        "table-float",
        Tables,
        "ringfold aggregate WAY -H --float --on-error null -k 1 -a min:2,max:2,sum:2,mean:2 FILE",
    ),
    (
        "table-memory",
        Tables,
        "ringfold aggregate WAY -H --memory 1K -q --on-error null -k 1 -a sum:2,distinct:2 FILE",
    ),
    (
        "table-merge",
        Tables,
        "for n in 1 2; do ringfold aggregate WAY -H --single-line --on-error null --range $n/2 -k 1 -a EVERY --save-partial p$n FILE || exit; \
         done; ringfold aggregate WAY -H --single-line --on-error null -k 1 -a EVERY -f ndjson FILE >r 2>/dev/null; \
         ringfold merge -f ndjson p1 p2 | cmp -s - r && echo equal",
    ),
    (
        "table-names",
        These(&[
            "orders.csv",
            "bom.csv",
            "orders.csv.gz",
            "cut.csv.gz",
            "nulls.csv",
        ]),
        "ringfold aggregate WAY -k city -a count,sum:price,lexmax:note --where \"price > 1 and note !~ '^z'\" \
         --sort sum_price:desc FILE",
    ),
    (
        "table-decimal-comma",
        These(&["comma.csv", "semicolons.csv"]),
        "ringfold aggregate WAY -d ';' -H --decimal-comma -k 1 -a sum:2,mean:2,count:3 FILE",
    ),
    (
        "table-squeeze",
        These(&["report.txt"]),
        "ringfold aggregate WAY -d ' ' --squeeze --ragged --skip-lines 1 --comment '#' --decimal-comma -H -k 1 -a max:2 FILE",
    ),
    (
        "table-repeated",
        These(&["header-twice.csv"]),
        "ringfold aggregate WAY -H --repeated-header keep -k 1 FILE",
    ),
    (
        "table-wide",
        These(&["wide.tsv"]),
        "ringfold aggregate WAY -k c1 -a sum:2-40 FILE; ringfold aggregate WAY -H -k 1 -a mean:5,median:23,stddev:40 -f table FILE",
    ),
    (
        "times",
        These(&["times.csv"]),
        "ringfold aggregate WAY -k 1@hour,3 FILE; ringfold aggregate WAY -k 2@10m,2@weekday -a min:2@time,max:1@time FILE; \
         ringfold aggregate WAY -k 3 --where \"\\$2 >= '2026-11-27'\" FILE",
    ),
    (
        "log",
        These(&["access.log", "orders.csv"]),
        "ringfold aggregate WAY --log combined -k status,time@hour -a count,sum:bytes,max:time,lexmin:path FILE; \
         ringfold aggregate WAY --log common -k method FILE; ringfold aggregate WAY --log combined FILE",
    ),
    (
        "json-lines",
        These(&["events.jsonl", "bad.jsonl", "orders.csv"]),
        "ringfold aggregate WAY --jsonl -k path -a count,sum:ms,distinct:user.name FILE; \
         ringfold aggregate WAY --jsonl --on-error skip -k user.name,tags -a max:ms --where \"path != '/x'\" -f ndjson FILE",
    ),
    (
        "usage",
        These(&["tenths"]),
        "for flags in -z -k3 '-k x' '-k 1 -a no:2' '-k 1 -a sum:9' '-k 1 --where $2>' '-k 1 --sort nothing' '-k 1 --top x' \
         '-k 1 --having x>1' '-k 1 -f 1brc' '-f table' '--save-partial p' '-d ab' '--on-error null' '-k 1 -a sum' missing \
         '--rejects r' '--where $2>1' '--header' '--memory 1X' '--engine no' '-j 0' '-k 1 --as a' '-k 1 --range 4/3'; do \
         echo \"$flags\"; eval \"ringfold aggregate $(echo \"$flags\" | sed 's/[$>]/\\\\&/g') FILE\" 2>&1; echo \"= $?\"; done",
    ),
];

/// What is kept of a longer answer: its first lines, its length and a hash of all of it.
const KEPT: usize = 1 << 12;

/// What is asked on a line: the names of files.
fn asked<'a>(of: Of, pairs: &[files::File], tables: &[files::File]) -> Vec<&'a str> {
    let names = |files: &[files::File]| files.iter().map(|file| file.0).collect::<Vec<_>>();
    match of {
        Pairs => names(pairs),
        Tables => names(tables),
        All => [names(pairs), names(tables)].concat(),
        These(names) => names.to_vec(),
    }
}

/// Bytes as lines of a text file, to be told from all other bytes.
fn text(mark: char, bytes: &[u8], out: &mut String) {
    let mut kept = bytes;
    if bytes.len() > KEPT {
        kept = &bytes[..KEPT / 4];
    }
    for line in kept.split_inclusive(|byte| *byte == b'\n') {
        let (line, is_whole) = match line.strip_suffix(b"\n") {
            Some(line) => (line, true),
            None => (line, false),
        };
        write!(out, "{mark} ").unwrap();
        for chunk in line.utf8_chunks() {
            for char in chunk.valid().chars() {
                match char {
                    '\\' => out.push_str("\\\\"),
                    '\0'..'\x20' | '\x7f' | '\u{80}'..='\u{a0}' | '\u{feff}' => {
                        write!(out, "{}", char.escape_unicode()).unwrap();
                    }
                    _ => out.push(char),
                }
            }
            for byte in chunk.invalid() {
                write!(out, "\\x{byte:02x}").unwrap();
            }
        }
        out.push_str(if is_whole { "\n" } else { "\\\n" });
    }
    if kept.len() < bytes.len() {
        let hash = twox_hash::XxHash3_64::oneshot(bytes);
        writeln!(out, "{mark}\\ {} bytes, {hash:016x}", bytes.len()).unwrap();
    }
}

/// What was printed, without what depends on the machine and on the way of reading.
fn masked(printed: &[u8], way: &str) -> Vec<u8> {
    let mut kept = Vec::with_capacity(printed.len());
    for line in printed.split_inclusive(|byte| *byte == b'\n') {
        match line.starts_with(b"instructions  ") {
            true => kept.extend_from_slice(b"instructions  ...\n"),
            // A command that is proposed has the flags of the run.
            false => match std::str::from_utf8(line) {
                Ok(line) => kept.extend(line.replace(&format!("{way} "), "").bytes()),
                Err(_) => kept.extend_from_slice(line),
            },
        }
    }
    kept
}

/// What a line prints about a file, read in a way.
fn section(line: &str, file: &str, way: &str, dir: &Path, path: &str) -> String {
    let line = line
        .replace("WAY", way)
        .replace("EVERY", EVERY)
        .replace("FILE", file);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &line])
        .current_dir(dir)
        .stdin(Stdio::null());
    shell.envs([
        ("PATH", path),
        ("HOME", "."),
        ("XDG_CONFIG_HOME", "."),
        ("TMPDIR", "."),
        ("RUST_BACKTRACE", "0"),
    ]);
    let ended = end(&mut shell);
    let mut section = format!("\n# {file}\n");
    text('|', &masked(&ended.stdout, way), &mut section);
    text('!', &masked(ended.stderr.as_bytes(), way), &mut section);
    match (ended.code, ended.signal) {
        (Some(0), _) => {}
        (Some(code), _) => writeln!(section, "= {code}").unwrap(),
        (None, signal) => writeln!(section, "= signal {signal:?}").unwrap(),
    }
    for made in ["r", "p", "p1", "p2", "p3"] {
        let _ = fs::remove_file(dir.join(made));
    }
    section
}

/// The first lines that differ.
fn difference(was: &str, is: &str) -> String {
    let (was, is): (Vec<_>, Vec<_>) = (was.lines().collect(), is.lines().collect());
    let equal = std::iter::zip(&was, &is)
        .take_while(|(was, is)| was == is)
        .count();
    let some = |sign: &str, lines: &[&str]| {
        let lines = lines.iter().skip(equal).take(3);
        lines
            .map(|line| format!("  {sign}{}\n", line.chars().take(300).collect::<String>()))
            .collect::<String>()
    };
    some("-", &was) + &some("+", &is)
}

#[test]
fn answers_are_those_that_are_kept() {
    let (pairs, tables) = (files::pairs(), files::tables());
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("linux-tests/golden");
    let program = program();
    let program = program.parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let is_rewrite = std::env::var_os(GOLDEN).is_some_and(|value| value == "write");
    let ways: Vec<_> = cached_ways().collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let dir = dir();
        for (name, bytes) in pairs.iter().chain(&tables) {
            write(dir.path(), name, bytes);
        }
        while let Some(&(name, of, line)) = LINES.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut answers = format!("$ {line}\n");
            for (n, file) in asked(of, &pairs, &tables).into_iter().enumerate() {
                let answer = section(line, file, "--engine pread -j 1", dir.path(), &path);
                answers += &answer;
                // Engines find the end of what is cut off in different places.
                if !(n + name.len()).is_multiple_of(3) || file == "cut.csv.gz" {
                    continue;
                }
                let way = ways[(n + name.len()) / 3 % ways.len()];
                // The hint of an error is made from the block with the record.
                let block = if answer.contains("\n= ") {
                    ""
                } else {
                    " -b 64"
                };
                let way = format!("{}{block} -j 4", way.flags().join(" "));
                let other = section(line, file, &way, dir.path(), &path);
                if other != answer {
                    let difference = difference(&answer, &other);
                    wrong.lock().unwrap().push(format!(
                        "{line}\nanswers otherwise with {way}, {file}:\n{difference}"
                    ));
                }
            }
            let golden = kept.join(format!("{name}.txt"));
            if is_rewrite {
                fs::write(golden, answers).unwrap();
                continue;
            }
            let was = fs::read_to_string(golden).unwrap_or_default();
            let (mut was, mut is) = (was.split("\n# "), answers.split("\n# "));
            while let (was, is) = (was.next(), is.next())
                && (was, is) != (None, None)
            {
                let (was, is) = (was.unwrap_or_default(), is.unwrap_or_default());
                if was != is {
                    let file = is
                        .lines()
                        .next()
                        .unwrap_or("a file that isn't asked any more");
                    let difference = difference(was, is);
                    wrong.lock().unwrap().push(format!(
                        "golden/{name}.txt, {file}:\n  {line}\n{difference}"
                    ));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    for name in crate::support::names(&kept) {
        if let Some(name) = name.strip_suffix(".txt")
            && !LINES.iter().any(|line| line.0 == name)
        {
            wrong.push(format!("golden/{name}.txt: no line of LINES is called so"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} answers changed; if on purpose: {GOLDEN}=write cargo test --test linux-tests golden, then look at git diff\n\n{}",
        wrong.len(),
        wrong[..wrong.len().min(10)].join("\n")
    );
}
