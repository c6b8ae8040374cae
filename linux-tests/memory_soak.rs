//! Files of random shapes by random queries in small control groups: no run is killed, and none gives another answer than a
//! run without a limit on one thread. `SHAPES` says how many (2,000), `SEED` with which it begins.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::group::Group;
use crate::probe::{Feature, skips};
use crate::soak::Random;
use crate::support::{dir, end, ringfold, str, write};

const AGGREGATES: [&str; 12] = [
    "count",
    "sum:n",
    "mean:n",
    "first:t",
    "last:t",
    "lexmin:t",
    "lexmax:t",
    "mode:t",
    "distinct:t",
    "median:n",
    "first:n",
    "distinct:k",
];

/// Values of one column: so long at most, and so many different ones.
struct Values {
    longest: usize,
    different: usize,
    filler: String,
}

impl Values {
    /// A record, which has two of them, is shorter than `--max-record`.
    fn new(random: &mut Random, most: usize) -> Values {
        let longest = *random.of(&[8, 8, 30, 200, 5_000, 50_000, 300_000, 900_000]);
        let longest = longest.min(most);
        let different = *random.of(&[1, 5, 100, usize::MAX]);
        let filler = (0..longest + 64).map(|_| char::from(b'a' + random.below(26) as u8));
        Values {
            longest,
            different,
            filler: filler.collect(),
        }
    }

    fn draw(&self, random: &mut Random, row: usize) -> String {
        let number = match self.different {
            usize::MAX => row,
            different => random.below(different),
        };
        // Some are short.
        let length = if number % 5 == 4 { 4 } else { self.longest };
        format!("{number}{}", &self.filler[number % 64..][..length])
    }
}

fn some_file(random: &mut Random) -> (&'static str, String) {
    let keys = Values::new(random, usize::MAX);
    let texts = Values::new(random, 1_000_000 - keys.longest);
    let form = *random.of(&["plain", "quoted", "json"]);
    let bytes = *random.of(&[1_000_000, 20_000_000, 60_000_000]);
    let mut text = String::from(if form == "json" { "" } else { "k,t,n\n" });
    let mut row = 0;
    while text.len() < bytes {
        let (key, value) = (keys.draw(random, row), texts.draw(random, row));
        let number = random.below(1000);
        let done = match form {
            "plain" => writeln!(text, "{key},{value},{number}"),
            "quoted" => writeln!(text, "\"{key}\",\"a \"\"b\"\"\n{value}\",{number}"),
            _ => writeln!(
                text,
                "{{\"k\":\"{key}\",\"t\":\"{value}\\n\",\"n\":{number}}}"
            ),
        };
        done.unwrap();
        row += 1;
    }
    (form, text)
}

fn some_query(random: &mut Random, form: &str) -> Vec<String> {
    let mut asked: Vec<&str> = AGGREGATES
        .into_iter()
        .filter(|_| random.one_in(4))
        .collect();
    if asked.is_empty() {
        asked.push("count");
    }
    let mut query = vec!["-a".to_string(), asked.join(",")];
    match random.below(4) {
        0 => {}
        1 => query.extend(["-k".into(), "k,n".into()]),
        _ => query.extend(["-k".into(), "k".into()]),
    }
    // Of long fields it isn't found out.
    query.extend(match form {
        "json" => vec!["--jsonl".into()],
        _ => vec!["-d".into(), ",".into()],
    });
    if random.one_in(3) {
        query.extend([
            "--sort".into(),
            format!("{}:desc", asked[0].replace(':', "_")),
        ]);
    }
    let formats = ["csv", "ndjson", "tsv"];
    query.extend(["-f".into(), random.of(&formats).to_string()]);
    query
}

#[test]
#[ignore = "half an hour: make soak"]
fn random_shapes() {
    if skips("random_shapes", &[Feature::MemoryGroup, Feature::Plain]) {
        return;
    }
    let number =
        |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (shapes, first) = (number("SHAPES", 2_000), number("SEED", 1));
    let groups = [64, 128, 256].map(|mib| (mib, Group::new("memory", mib << 20).unwrap()));
    let mut wrong = Vec::new();
    for seed in first..first + shapes {
        let random = &mut Random::new(seed);
        let dir = dir();
        let (form, text) = some_file(random);
        let query = some_query(random, form);
        let path = write(dir.path(), "file", text.as_bytes());
        let mut plain = ringfold(["aggregate", "-q", "-j", "1", "--memory", "16G", str(&path)]);
        let want = end(plain.args(&query)).answer();
        let mut input = path.clone();
        if let Some((program, ending)) =
            *random.of(&[None, None, Some(("gzip", "gz")), Some(("zstd", "zst"))])
        {
            let packed = Command::new(program)
                .args(["-1", "-q", "-k", str(&path)])
                .status();
            if packed.is_ok_and(|status| status.success()) {
                fs::remove_file(&path).unwrap();
                input = dir.path().join(format!("file.{ending}"));
            }
        }
        let (mib, group) = random.of(&groups);
        let threads = random.of(&["1", "2", "4"]).to_string();
        let mut run = ringfold([
            "aggregate",
            "-q",
            "-j",
            &threads,
            "--spill-dir",
            str(dir.path()),
            str(&input),
        ]);
        run.args(&query);
        if random.one_in(2) {
            run.args(["--engine", *random.of(&["pread", "uring", "read"])]);
        }
        group.take_in(&mut run);
        let ended = end(&mut run);
        if ended.code != Some(0) || ended.stdout != want {
            let (code, signal) = (ended.code, ended.signal);
            let what = format!(
                "seed {seed}: {mib} MiB, {code:?} {signal:?}: {run:?}: {}",
                ended.stderr
            );
            eprintln!("{what}");
            wrong.push(what);
        }
    }
    assert!(wrong.is_empty(), "{} of {shapes} are wrong", wrong.len());
}
