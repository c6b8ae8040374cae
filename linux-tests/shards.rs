//! Shards of keys: each key is in the one that its hash says, and together they are the whole.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use ringfold::query::{Partial, Query, Shown};
use ringfold::{Config, Input, Result};
use twox_hash::XxHash3_64;

use crate::catalogue::drawn;
use crate::partials::{everything, records};
use crate::support::{csv, dir, end, ringfold, write};

fn saved(partials: &[Partial]) -> Result<Vec<u8>> {
    let mut saved = Vec::new();
    let done = Partial::merge(partials)?.save(&mut saved);
    done.map_err(|error| ringfold::Error::output(&error))?;
    Ok(saved)
}

fn answer(partials: &[Partial]) -> String {
    let merged = Partial::merge(partials).unwrap();
    csv(&merged.answer(&Shown::default()).unwrap())
}

/// The shard of a key of these parts, as docs/partial-format.md says it.
fn shard(parts: &[impl AsRef<[u8]>], count: u32) -> u32 {
    let (last, before) = parts.split_last().unwrap();
    let mut key = Vec::new();
    for part in before {
        for &byte in part.as_ref() {
            key.push(byte);
            key.extend((byte == 0).then_some(0xff));
        }
        key.extend([0, 0]);
    }
    key.extend(last.as_ref());
    1 + ((u128::from(XxHash3_64::oneshot(&key)) * u128::from(count)) >> 64) as u32
}

/// Random files in random parts, whose shards are merged one by one, and all of them.
#[test]
fn shards_are_the_whole() {
    let strategy = (
        prop::collection::vec(records(), 1..4),
        1..5_u32,
        1..6_u32,
        any::<bool>(),
    );
    let cases = Cases {
        cases: drawn(15, 60),
        failure_persistence: None,
        ..Cases::default()
    };
    let done = TestRunner::new(cases).run(&strategy, |(files, parts, count, is_exact)| {
        let dir = dir();
        let paths = (0..).zip(&files).map(|(at, records)| {
            let text = format!(
                "one,two,number,text\n{}\nfile {at},,,\n",
                records.join("\n")
            );
            write(dir.path(), &format!("{at}.csv"), text.as_bytes())
        });
        let paths: Vec<_> = paths.collect();
        let query = everything(is_exact);
        let run = |part| {
            let input = Input::open(&paths).unwrap().part(part, parts).unwrap();
            query.partial(&input, &Config::default()).unwrap().0
        };
        let partials: Vec<Partial> = (1..=parts).map(run).collect();
        let whole = saved(&partials).unwrap();
        let want = answer(&partials);
        let divided = partials.iter().map(|partial| partial.split(count).unwrap());
        let divided: Vec<Vec<Partial>> = divided.collect();

        // Shard by shard.
        let mut lines = Vec::new();
        let mut merged = Vec::new();
        for number in 1..=count {
            let own = divided.iter().map(|shards| &shards[number as usize - 1]);
            let own: Vec<&Partial> = own.collect();
            for partial in &own {
                let which = (count > 1).then_some((number, count));
                prop_assert_eq!(partial.shard(), which);
                partial
                    .groups()
                    .for_each(|group| {
                        let mut parts = group.parts();
                        parts.truncate(2);
                        assert_eq!(shard(&parts, count), number, "{parts:?}");
                        Ok(())
                    })
                    .unwrap();
            }
            let mut bytes = Vec::new();
            Partial::merge(own).unwrap().save(&mut bytes).unwrap();
            let keys = Partial::merge(&partials)
                .unwrap()
                .keys(number, count)
                .unwrap();
            let mut by_keys = Vec::new();
            keys.save(&mut by_keys).unwrap();
            prop_assert!(bytes == by_keys, "shard {number} of {count}");
            let answer = csv(&keys.answer(&Shown::default()).unwrap());
            lines.extend(answer.lines().skip(1).map(str::to_owned));
            merged.push(Partial::read("shard", bytes).unwrap());
        }
        let mut whole_lines: Vec<&str> = want.lines().skip(1).collect();
        lines.sort();
        whole_lines.sort();
        prop_assert_eq!(lines, whole_lines);

        // All of them, merged by shard before or not.
        prop_assert!(saved(&merged).unwrap() == whole);
        let all: Vec<Partial> = divided.into_iter().flatten().collect();
        prop_assert!(saved(&all).unwrap() == whole);
        prop_assert_eq!(answer(&merged), want);
        Ok(())
    });
    done.unwrap();
}

/// These are the same on every machine and in every version.
#[test]
fn a_key_stays_in_its_shard() {
    let text = ["Bern", "Oslo", "Rom", "", "0", "Zürich"].join("\n") + "\n\"\"\n";
    let query = Query::new(b',').key(1);
    let input = Input::memory([text.into_bytes()]);
    let (partial, ..) = query.partial(&input, &Config::default()).unwrap();
    let mut found = BTreeMap::new();
    for shard in partial.split(1000).unwrap() {
        shard
            .groups()
            .for_each(|group| {
                let key = String::from_utf8(group.key().to_vec()).unwrap();
                found.insert(key, shard.shard().unwrap().0);
                Ok(())
            })
            .unwrap();
    }
    // By another implementation of the hash.
    let want = [
        ("", 176),
        ("0", 100),
        ("Bern", 35),
        ("Oslo", 957),
        ("Rom", 972),
        ("Zürich", 46),
    ];
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        want.map(|(key, shard)| (key.to_owned(), shard))
    );
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let dir = dir();
    let texts = ["a\nb\nc\nd\ne\n", "a\nf\n"];
    let query = Query::new(b',').key(1);
    let partials = ["1.txt", "2.txt"]
        .into_iter()
        .zip(texts)
        .map(|(name, text)| {
            let input = Input::open([write(dir.path(), name, text.as_bytes())]).unwrap();
            query.partial(&input, &Config::default()).unwrap().0
        });
    let [one, two]: [Partial; 2] = partials.collect::<Vec<_>>().try_into().unwrap();
    let refused = |partials: Vec<&Partial>| {
        let error = Partial::merge(partials).err().unwrap().to_string();
        error.replace(&format!("{}/", dir.path().display()), "")
    };
    let (ones, twos) = (one.split(3).unwrap(), two.split(3).unwrap());
    assert_eq!(
        refused(vec![&ones[0], &two]),
        "2.txt: this partial has all keys, and 1.txt shard 1/3 has the keys of shard 1/3"
    );
    assert_eq!(
        refused(vec![&ones[0], &two.split(2).unwrap()[0]]),
        "2.txt shard 1/2: this partial has the keys of shard 1/2, and 1.txt shard 1/3 has the keys of shard 1/3"
    );
    assert_eq!(
        refused(vec![&ones[0], &twos[2]]),
        "shard 2 of 3 is missing: merge shards of one number, or all of them"
    );
    assert_eq!(
        refused(vec![&ones[0], &ones[1], &twos[2]]),
        "2.txt shard 3/3: this shard isn't of the same records as that of 1.txt shard 1/3"
    );
    assert_eq!(
        refused(vec![&ones[1], &ones[1]]),
        "1.txt shard 2/3: 1.txt comes twice: 1.txt shard 2/3 has it too"
    );
    let error = ones[0].split(2).unwrap_err().to_string();
    assert!(
        error.ends_with("it is shard 1/3, which isn't divided again"),
        "{error}"
    );
    let error = one.split(0).unwrap_err().to_string();
    assert_eq!(error, "there are no shards: at least 1 is needed");
    let merged = || Partial::merge([&one]).unwrap();
    let error = merged().keys(3, 2).err().unwrap().to_string();
    assert_eq!(error, "there is no shard 3 of 2: they are counted from 1");
    let error = merged()
        .keys(1, 2)
        .unwrap()
        .keys(1, 2)
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        error,
        "the partials are shards 1/2, which aren't divided again"
    );

    // A file or a part of one that is missing is noticed as in other partials.
    let path = dir.path().join("1.txt");
    let part = |part| {
        let input = Input::open([&path]).unwrap().part(part, 3).unwrap();
        let (partial, ..) = query.partial(&input, &Config::default()).unwrap();
        partial.split(2).unwrap().remove(1)
    };
    let (first, last) = (part(1), part(3));
    let merged = Partial::merge([&first, &last]).unwrap();
    assert_eq!(merged.missing().parts, [(2, 3)]);
}

#[test]
fn a_range_of_keys_on_the_command_line() {
    let dir = dir();
    let dir = dir.path();
    let rows = |from: u32| (from..from + 50).map(|at| format!("{},{at}.5\n", at % 37));
    write(dir, "1.csv", rows(0).collect::<String>().as_bytes());
    write(dir, "2.csv", rows(20).collect::<String>().as_bytes());
    let ran = |args: &[&str]| end(ringfold(args.iter().copied()).current_dir(dir));
    for name in ["1", "2"] {
        let (to, from) = (format!("{name}.part"), format!("{name}.csv"));
        ran(&[
            "aggregate",
            "-k",
            "1",
            "-a",
            "count,mean:2",
            "--save-partial",
            &to,
            &from,
        ])
        .answer();
    }
    let both = ["1.part", "2.part"];
    for more in [
        &[][..],
        &["--having", "count > 1"],
        &["--sort", "mean_2:desc", "-j", "3"],
    ] {
        let lines = |args: &[&str]| -> Vec<String> {
            let answer = ran(&[&["merge"], args, more, &both].concat()).answer();
            let answer = String::from_utf8(answer).unwrap();
            answer.lines().skip(1).map(str::to_owned).collect()
        };
        let mut want = lines(&[]);
        let mut got: Vec<String> = ["1/3", "2/3", "3/3"]
            .iter()
            .flat_map(|keys| lines(&["--keys", keys]))
            .collect();
        want.sort();
        got.sort();
        assert!(want.len() > 10);
        assert_eq!(got, want);
    }
    // Divided before they are merged, in any order.
    for name in ["1", "2"] {
        let (to, from) = (format!("{name}.2of3"), format!("{name}.part"));
        ran(&["merge", "--keys", "2/3", "--save-partial", &to, &from]).answer();
    }
    let want = ran(&["merge", "--keys", "2/3", "1.part", "2.part"]).answer();
    let (got, notices) = ran(&["merge", "1.2of3", "2.2of3"]).answer_and_notices();
    assert_eq!(got, want);
    assert_eq!(
        notices,
        "ringfold: notice: only the keys of shard 2/3 are here\n"
    );
    let inspected = String::from_utf8(ran(&["inspect", "1.2of3"]).answer()).unwrap();
    assert!(inspected.contains("shard      2/3\n"), "{inspected}");

    let refused = |args: &[&str], code| {
        ran(&[&["merge", "--keys", "2/3"], args, &both].concat()).failure(code)
    };
    for (flags, what) in [
        (&["--total"][..], "a total is"),
        (&["--top", "3", "--sort", "count"], "the first rows are"),
        (&["--pivot", "key1"], "the columns of a pivot are"),
    ] {
        let want = format!("{what} of all keys, and these are those of shard 2/3");
        assert_eq!(refused(flags, 2), want, "{flags:?}");
    }
    let ended = ran(&["merge", "--keys", "4/3", "1.part"]);
    assert_eq!(ended.code, Some(2));
    let stderr = ended.stderr;
    assert!(stderr.contains("there is no part 4 of 3"), "{stderr}");
    ran(&[
        "aggregate",
        "-k",
        "1",
        "-a",
        "share(count())",
        "--save-partial",
        "s.part",
        "1.csv",
    ])
    .answer();
    let error = ran(&["merge", "--keys", "1/2", "s.part"]).failure(2);
    assert_eq!(
        error,
        "a share is of all keys, and these are those of shard 1/2"
    );
}
