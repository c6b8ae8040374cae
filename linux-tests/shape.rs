//! The shape of an answer: values of its rows in conditions and orders.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::{dir, end, ringfold, write};

const ORDERS: &[u8] = b"city,region,price,qty,note\nBern,a,1.50,2,\"a, b\"\nOslo,b,20,1,\nBern,a,2.25,,z\nRome,a,7,3,y\nNice,b,4,9,\n";

fn answer(command: &str, dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold([command]).args(args).current_dir(dir));
    let (stdout, _) = ended.answer_and_notices();
    String::from_utf8(stdout).unwrap()
}

pub fn refused(dir: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).current_dir(dir));
    assert_eq!((ended.code, ended.stdout.len()), (Some(2), 0), "{args:?}");
    ended.stderr
}

/// The answer to `asked`, `shown` so: the same by every engine, any number of threads, in little memory, of merged partials and
/// of a partial that is continued.
pub fn everywhere(dir: &Path, asked: &[&str], shown: &[&str], file: &str) -> String {
    let ask = |more: &[&str]| answer("aggregate", dir, &[asked, shown, &[file], more].concat());
    let want = ask(&[]);
    for more in [
        &["--engine", "pread", "--threads", "1"][..],
        &["--engine", "mmap", "--threads", "3", "--block-size", "4K"],
        &["--memory", "64K", "--threads", "1"],
        &["--memory", "300K"],
    ] {
        assert_eq!(ask(more), want, "{asked:?} {shown:?} {more:?}");
    }
    let state = "state";
    let _ = std::fs::remove_file(dir.join(state));
    for range in ["1/3", "2/3", "3/3"] {
        let of_range = [&["--range", range, "--single-line"][..], asked, &[file]].concat();
        let part = range.replace('/', "-");
        answer(
            "aggregate",
            dir,
            &[&of_range[..], &["--save-partial", &part]].concat(),
        );
        let more = ["--continue", state, "--report-too"];
        let continued = answer("aggregate", dir, &[&of_range[..], shown, &more].concat());
        if range == "3/3" {
            assert_eq!(continued, want, "{asked:?} {shown:?} continued");
        }
    }
    for memory in [&[][..], &["--memory", "64K"]] {
        let args = [shown, memory, &["1-3", "2-3", "3-3"]].concat();
        assert_eq!(
            answer("merge", dir, &args),
            want,
            "{asked:?} {shown:?} merged {memory:?}"
        );
    }
    want
}

#[test]
fn rows_are_computed_with() {
    let dir = dir();
    write(dir.path(), "o.csv", ORDERS);
    for (args, want) in [
        (
            &["-a", "count,sum:price", "--having", "sum_price / count > 4"][..],
            "city,count,sum_price\nOslo,1,20.00\nRome,1,7.00\n",
        ),
        // By what an aggregate was asked for, whatever it is called.
        (
            &[
                "-a",
                "sum:price",
                "--as",
                "c,n",
                "--having",
                "sum(price) > 5",
            ],
            "c,n\nOslo,20.00\nRome,7.00\n",
        ),
        (
            &[
                "-a",
                "sum(price*qty) as rev",
                "--sort",
                "sum( price * qty ):desc",
                "--top",
                "1",
            ],
            "city,rev\nNice,36.00\n",
        ),
        (
            &["-a", "sum(price)/count() as m", "--having", "count(*) > 1"],
            "city,m\nBern,1.875000\n",
        ),
        (
            &[
                "-a",
                "count_if(qty > 1) as n",
                "--having",
                "count(*) filter (where qty>1) = 0",
            ],
            "city,n\nOslo,0\n",
        ),
        (
            &["-a", "count", "--having", "share(count) > 0.3"],
            "city,count\nBern,2\n",
        ),
        (
            &[
                "-a",
                "count,mean:price",
                "--sort",
                "-mean_price / count",
                "--top",
                "2",
            ],
            "city,count,mean_price\nOslo,1,20.0000\nRome,1,7.0000\n",
        ),
        (
            &["--sort", "\"count\" + 0:desc,lower(city):desc"],
            "city,count\nBern,2\nRome,1\nOslo,1\nNice,1\n",
        ),
        (
            &["--sort", "-sum(qty)", "-a", "sum:qty"],
            "city,sum_qty\nNice,9\nRome,3\nBern,2\nOslo,1\n",
        ),
        (
            &["--having", "upper(city) = 'BERN' or left(city, 1) in ('N')"],
            "city,count\nBern,2\nNice,1\n",
        ),
        (
            &[
                "-a",
                "min:price,max:price",
                "--having",
                "max_price > min_price",
            ],
            "city,min_price,max_price\nBern,1.50,2.25\n",
        ),
        (
            &[
                "-a",
                "mean:price",
                "--having",
                "if(mean_price > 5, 1, 0) = 1",
            ],
            "city,mean_price\nOslo,20.0000\nRome,7.0000\n",
        ),
    ] {
        let asked: Vec<&str> = ["-k", "city", "o.csv"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        assert_eq!(answer("aggregate", dir.path(), &asked), want, "{args:?}");
    }
    for (args, why) in [
        (
            ["--sort", "share(count) + 1"],
            "--sort: column 1: share(x) has the order of x",
        ),
        (
            ["--having", "sum(qty) > 1"],
            "no column is called `sum(qty)`; the answer has: city, count",
        ),
        (
            ["--having", "share(count / 2) > 1"],
            "has a share of a quotient",
        ),
        (["--having", "share(foo) > 1"], "no column is called `foo`"),
        (
            ["--having", "count + 'x' > 1"],
            "`+` takes a number here, and this is a text",
        ),
        (
            ["--sort", "conut / 2"],
            "column 1: no column is called `conut`, did you mean `count`?",
        ),
        (
            ["--sort", "conut desc"],
            "no column is called `conut desc`; the answer has: city, count",
        ),
        (
            ["--sort", "count *"],
            "--sort: column 8: a column is missing",
        ),
    ] {
        let refused = refused(dir.path(), &[&["-k", "city", "o.csv"][..], &args].concat());
        assert!(refused.contains(why), "{args:?}: {refused}");
    }
    // Rows that can't be computed with are counted.
    let args = [
        "aggregate",
        "-k",
        "city",
        "o.csv",
        "--having",
        "city * 2 > 1",
    ];
    let (_, said) = end(ringfold(args).current_dir(dir.path())).answer_and_notices();
    let want = "4 rows of the answer left out, because --having can't compare a value, the first by `Bern` is not a number (column `city`)";
    assert!(said.contains(want), "{said}");
}

#[test]
fn a_total_and_first_rows_of_each() {
    let dir = dir();
    write(dir.path(), "o.csv", ORDERS);
    let asked = [
        "-k",
        "region,city",
        "-a",
        "count,sum:price,share(sum(price)) as part",
    ];
    let total = "total,,5,34.75,1.000000\n";
    for (shown, want) in [
        (
            &["--total"][..],
            "a,Bern,2,3.75,0.107914\na,Rome,1,7.00,0.201439\nb,Nice,1,4.00,0.115108\nb,Oslo,1,20.00,0.575540\n",
        ),
        (
            &["--total", "--having", "count > 1"],
            "a,Bern,2,3.75,0.107914\n",
        ),
        (&["--total", "--top", "0"], ""),
        (
            &[
                "--total",
                "--sort",
                "region,-sum_price",
                "--top",
                "1",
                "--per",
                "region",
            ],
            "a,Rome,1,7.00,0.201439\nb,Oslo,1,20.00,0.575540\n",
        ),
        // Before the total, a key that is called so.
        (
            &[
                "--total",
                "--sort",
                "-part",
                "--top",
                "1",
                "--per",
                "region,city",
                "--having",
                "city = 'Bern'",
            ],
            "a,Bern,2,3.75,0.107914\n",
        ),
    ] {
        let want = format!("region,city,count,sum_price,part\n{want}{total}");
        let got = answer(
            "aggregate",
            dir.path(),
            &[&asked[..], &["o.csv"], shown].concat(),
        );
        assert_eq!(got, want, "{shown:?}");
    }
    for (format, want) in [
        (
            "ndjson",
            "{\"city\":\"Bern\",\"count\":2}\n{\"city\":null,\"count\":5}\n",
        ),
        (
            "json",
            "[\n{\"city\":\"Bern\",\"count\":2},\n{\"city\":null,\"count\":5}\n]\n",
        ),
        ("tsv", "city\tcount\nBern\t2\ntotal\t5\n"),
        (
            "markdown",
            "| city | count |\n| --- | ---: |\n| Bern | 2 |\n| total | 5 |\n",
        ),
        (
            "table",
            "city   count\n-----  -----\nBern       2\ntotal      5\n",
        ),
    ] {
        let args = ["-k", "city", "o.csv", "--total", "--top", "1", "-f", format];
        assert_eq!(answer("aggregate", dir.path(), &args), want, "{format}");
    }
    let args = ["-k", "city", "o.csv", "--total", "--where", "qty > 100"];
    assert_eq!(
        answer("aggregate", dir.path(), &args),
        "city,count\ntotal,0\n"
    );
    // A bar is drawn to the scale of the rows.
    let args = ["-k", "city", "o.csv", "--total", "-f", "bars"];
    let bars = answer("aggregate", dir.path(), &args);
    let lines: Vec<&str> = bars.lines().collect();
    assert!(
        lines[2].chars().count() > 78 && lines[6] == "total      5",
        "{bars}"
    );
    for (args, why) in [
        (
            &["-a", "count", "--total"][..],
            "a total is over the rows of a key",
        ),
        (
            &["-k", "city", "--top", "1", "--per", "count"],
            "no column is called `count`; the key has: city",
        ),
        (&["-k", "city", "--per", "city"], "--top <ROWS>"),
    ] {
        let refused = refused(dir.path(), &[args, &["o.csv"]].concat());
        assert!(refused.contains(why), "{args:?}: {refused}");
    }
}

/// What every aggregate is over all records, and one after the other without a key.
#[test]
fn totals_are_those_of_one_group() {
    let dir = dir();
    let (text, _) = random(4_000);
    write(dir.path(), "r.csv", text.as_bytes());
    let of_numbers = "count,count:number,sum:number,mean:number,min:number,max:number,range:number,var:number,stddev_pop:number";
    let of_texts = "first:one,last:one,lexmin:one,lexmax:two";
    let of_values = "median:number,p99:number,distinct:one,mode:two,distinct:number";
    let estimates = "approx_median:number,approx_distinct:one,count_if(number > 3)";
    let of_two = "arg_max(one, number),corr(number, hour),weighted_mean(number, hour)";
    let computed = "sum(number) / count(),p99(number) - min(number)";
    for aggregates in [
        of_numbers,
        of_texts,
        &format!("{of_values},sum:number"),
        estimates,
        of_two,
        "top(3, two),values(hour),histogram(number, 100),iqr:number",
        computed,
    ] {
        let condition = ["--where", "number > 0 or two = 'a'"];
        let is_once = aggregates != of_numbers;
        for more in [&condition[..], &[]].into_iter().skip(usize::from(is_once)) {
            let asked = [&["-k", "one,hour", "-a", aggregates][..], more].concat();
            let shown = [
                "--total",
                "--having",
                "length(one) > 3",
                "--sort",
                "hour,one",
                "--top",
                "2",
                "--per",
                "hour",
            ];
            let got = everywhere(dir.path(), &asked, &shown, "r.csv");
            let one = answer(
                "aggregate",
                dir.path(),
                &[&["-a", aggregates, "r.csv"][..], more].concat(),
            );
            let total = got.lines().last().unwrap();
            assert_eq!(
                total.strip_prefix("total,,"),
                one.lines().last(),
                "{asked:?}"
            );
            // The rows are the first two of each hour.
            let all = answer(
                "aggregate",
                dir.path(),
                &[&asked[..], &shown[1..5], &["r.csv"]].concat(),
            );
            let hour = |line: &str| line.split(',').nth(1).unwrap().to_string();
            let mut counts = std::collections::HashMap::<String, usize>::new();
            let kept = all.lines().filter(|line| {
                let count = counts.entry(hour(line)).or_default();
                *count += 1;
                *count <= 2
            });
            let want: Vec<&str> = kept.chain([total]).collect();
            assert_eq!(got.lines().collect::<Vec<_>>(), want, "{asked:?}");
            assert!(want.len() > 40);
        }
    }
}

#[test]
fn values_become_columns() {
    let dir = dir();
    write(dir.path(), "o.csv", ORDERS);
    for (args, want) in [
        (
            &["-k", "city,region", "--pivot", "region"][..],
            "city,a,b\nBern,2,\nNice,,1\nOslo,,1\nRome,1,\n",
        ),
        (
            &[
                "-k",
                "region,city",
                "-a",
                "count,sum:price",
                "--pivot",
                "region",
                "--total",
                "--sort",
                "-a_sum_price",
                "--top",
                "2",
            ],
            "city,a_count,a_sum_price,b_count,b_sum_price\nRome,1,7.00,,\nBern,2,3.75,,\ntotal,3,10.75,2,24.00\n",
        ),
        (
            &[
                "-k",
                "city,region",
                "-a",
                "sum(price)/count()",
                "--pivot",
                "city",
                "--total",
                "--precision",
                "1",
                "-f",
                "ndjson",
            ],
            "{\"region\":\"a\",\"Bern\":1.9,\"Nice\":null,\"Oslo\":null,\"Rome\":7.0}\n\
             {\"region\":\"b\",\"Bern\":null,\"Nice\":4.0,\"Oslo\":20.0,\"Rome\":null}\n\
             {\"region\":null,\"Bern\":1.9,\"Nice\":4.0,\"Oslo\":20.0,\"Rome\":7.0}\n",
        ),
        (
            &[
                "-k",
                "city,region",
                "--pivot",
                "region",
                "--sort",
                "coalesce(a, 0) - coalesce(b, 0):desc,-city",
            ],
            "city,a,b\nBern,2,\nRome,1,\nOslo,,1\nNice,,1\n",
        ),
        // By number, and the empty value by a name.
        (
            &["-k", "region,qty", "-a", "median:price", "--pivot", "qty"],
            "region,null,1,2,3,9\na,2.2500,,1.5000,7.0000,\nb,,20.0000,,,4.0000\n",
        ),
        (&["-k", "region", "--pivot", "region"], "a,b\n3,2\n"),
        // A condition is about the rows before.
        (
            &[
                "-k",
                "city,region",
                "--pivot",
                "region",
                "--having",
                "count = 1 and region = 'b'",
            ],
            "city,b\nNice,1\nOslo,1\n",
        ),
        (
            &[
                "-k",
                "region,note,city",
                "--pivot",
                "city",
                "--top",
                "1",
                "--per",
                "region",
                "--sort",
                "region,-note",
            ],
            "region,note,Bern,Nice,Oslo,Rome\na,z,1,,,\nb,\"\",,1,1,\n",
        ),
        (
            &[
                "-k",
                "city,region",
                "--pivot",
                "region",
                "--having",
                "count > 5",
            ],
            "city\n",
        ),
    ] {
        for memory in [&[][..], &["--memory", "1", "-q"]] {
            let args = [args, &["o.csv"], memory].concat();
            assert_eq!(answer("aggregate", dir.path(), &args), want, "{args:?}");
        }
    }
    let mut many = String::from("k,v\n");
    (0..1001).for_each(|v| writeln!(many, "a,{v}").unwrap());
    write(dir.path(), "many.csv", many.as_bytes());
    for (args, why) in [
        (
            &["-k", "k,v", "--pivot", "v", "many.csv"][..],
            "the values of `v` make more than 1000 columns",
        ),
        (
            &["-k", "city,note", "--pivot", "qty", "o.csv"],
            "no column is called `qty`, did you mean `city`? the key has: city, note",
        ),
        (
            &[
                "-k",
                "city,note",
                "--pivot",
                "note",
                "--sort",
                "foo",
                "o.csv",
            ],
            "no column is called `foo`; the answer has: city, null, a, b, y, z",
        ),
        (
            &["-k", "city", "--pivot", "city", "--total", "o.csv"],
            "the only one becomes columns",
        ),
        (
            &[
                "-k", "city", "--pivot", "city", "--top", "1", "--per", "city", "o.csv",
            ],
            "so there are no rows of each",
        ),
        (
            &[
                "-k",
                "city",
                "--pivot",
                "city",
                "--where",
                "qty > 100",
                "o.csv",
            ],
            "there are no groups",
        ),
    ] {
        let said = refused(dir.path(), args);
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

/// Against cells that are looked up in the rows before.
#[test]
fn pivots_are_the_same_everywhere() {
    let dir = dir();
    let (text, _) = random(5_000);
    write(dir.path(), "r.csv", text.as_bytes());
    let aggregates = "count,sum:number,p90:number";
    let asked = ["-k", "one,hour,two", "-a", aggregates];
    let rows = answer("aggregate", dir.path(), &[&asked[..], &["r.csv"]].concat());
    let rows: Vec<Vec<&str>> = rows
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    let all = answer(
        "aggregate",
        dir.path(),
        &["-k", "two", "-a", aggregates, "r.csv"],
    );
    for (pivot, others) in [(2, [0, 1]), (1, [0, 2])] {
        let mut values: Vec<&str> = rows.iter().map(|row| row[pivot]).collect();
        let number = |value: &&str| value.parse::<u64>().ok();
        values.sort_by_key(|value| (number(value), value.trim_matches('"').to_string()));
        values.dedup();
        let mut cells = std::collections::HashMap::new();
        let mut keys: Vec<[&str; 2]> = Vec::new();
        for row in &rows {
            let key = others.map(|at| row[at]);
            cells.insert((key, row[pivot]), row[3..].join(","));
            keys.push(key);
        }
        keys.sort_by_key(|[one, two]| {
            let text = |text: &str| text.trim_matches('"').to_string();
            (text(one), number(two), text(two))
        });
        keys.dedup();
        let line = |key: &[&str; 2]| {
            let found = values.iter().map(|value| match cells.get(&(*key, *value)) {
                Some(cell) => cell.as_str(),
                None => ",,",
            });
            key.iter()
                .copied()
                .chain(found)
                .collect::<Vec<_>>()
                .join(",")
        };
        let name = ["one", "hour", "two"][pivot];
        let got = everywhere(dir.path(), &asked, &["--pivot", name, "--total"], "r.csv");
        let got: Vec<&str> = got.lines().collect();
        let want: Vec<String> = keys.iter().map(line).collect();
        assert_eq!(got[1..got.len() - 1], want, "{name}");
        if name == "two" {
            let total = all
                .lines()
                .skip(1)
                .map(|line| line.split_once(',').unwrap().1);
            let total: Vec<&str> = ["total", ""].into_iter().chain(total).collect();
            assert_eq!(got[got.len() - 1], total.join(","));
        }
        // Sorted by columns that weren't there before, and by a key and one of these.
        let first = values[values.len() - 1];
        for order in [
            format!("{first}_sum_number:desc"),
            format!("one:desc,{first}_sum_number + {first}_count"),
        ] {
            let shown = ["--pivot", name, "--sort", &order, "--top", "60"];
            // A column's name may begin with a digit.
            let shown = match first.parse::<u64>() {
                Ok(_) if order.contains('+') => continue,
                _ => shown,
            };
            let got = everywhere(dir.path(), &asked, &shown, "r.csv");
            let column = 2 + 3 * (values.len() - 1) + 1;
            let sums: Vec<i64> = got
                .lines()
                .skip(1)
                .map_while(|line| line.split(',').nth(column).unwrap().parse().ok())
                .collect();
            assert_eq!(got.lines().count(), 61);
            if !order.contains("one") {
                assert!(
                    sums.len() > 10 && sums.is_sorted_by(|one, two| one >= two),
                    "{sums:?}"
                );
            }
        }
    }
}

/// Records of a key of three columns and numbers, some of them null; as text, and as what they are.
fn random(rows: u64) -> (String, Vec<Row>) {
    let mut text = String::from("one,two,hour,number\n");
    let mut all = Vec::new();
    for at in 0..rows {
        let mixed = (at + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let row = Row {
            one: if mixed % 17 == 0 {
                String::new()
            } else {
                format!("k{}", mixed % 700)
            },
            two: ["a", "b", "total", ""][(mixed >> 10) as usize % 4],
            hour: (mixed >> 14) % 24,
            number: (mixed % 5 > 0).then_some((mixed >> 7) as i64 % 1000 - 300),
        };
        let number = row
            .number
            .map_or(String::new(), |number| number.to_string());
        writeln!(text, "{},{},{},{number}", row.one, row.two, row.hour).unwrap();
        all.push(row);
    }
    (text, all)
}

struct Row {
    one: String,
    two: &'static str,
    hour: u64,
    number: Option<i64>,
}

#[test]
fn values_of_rows_are_the_same_everywhere() {
    let dir = dir();
    let (text, rows) = random(20_000);
    write(dir.path(), "r.csv", text.as_bytes());
    let asked = ["-k", "one,two", "-a", "count,sum:number,max:number"];
    let shown = [
        "--having",
        "sum(number) / count > 200 and length(one) > 2",
        "--sort",
        "sum_number * 10 + count:desc",
    ];
    let got = everywhere(dir.path(), &asked, &shown, "r.csv");
    let mut groups = std::collections::BTreeMap::<_, (i64, i64, Option<i64>)>::new();
    for row in &rows {
        let (count, sum, most) = groups.entry((&row.one, row.two)).or_default();
        *count += 1;
        *sum += row.number.unwrap_or(0);
        *most = (*most).max(row.number);
    }
    let has_numbers = |most: &Option<i64>| most.is_some();
    let mut want: Vec<_> = groups
        .iter()
        .filter(|((one, _), (count, sum, most))| {
            has_numbers(most) && *sum > 200 * count && one.len() > 2
        })
        .collect();
    want.sort_by_key(|(key, (count, sum, _))| (-(sum * 10 + count), **key));
    let want: Vec<String> = want
        .iter()
        .map(|((one, two), (count, sum, most))| {
            let two = if two.is_empty() { "\"\"" } else { two };
            format!("{one},{two},{count},{sum},{}", most.unwrap())
        })
        .collect();
    assert!(want.len() > 20);
    assert_eq!(
        got,
        format!("one,two,count,sum_number,max_number\n{}\n", want.join("\n"))
    );
    assert!(rows.iter().any(|row| row.hour == 23));
}

/// Keys that are the same number stay rows of their own, with their groups side by side.
#[test]
fn rows_of_equal_numbers() {
    let dir = dir();
    write(
        dir.path(),
        "n.csv",
        b"k,p,v\n1,a,5\n1.0,a,6\n01,a,9\n1,b,7\n1.0,b,8\n2,a,1\n",
    );
    for memory in ["0", "1G"] {
        let args = [
            "-q", "-k", "k,p", "-a", "sum:v", "--pivot", "p", "--memory", memory,
        ];
        let args = [&args[..], &["n.csv"]].concat();
        let want = "k,a,b\n01,9,\n1,5,7\n1.0,6,8\n2,1,\n";
        assert_eq!(printed(dir.path(), &args), want);
        let first = [&args[..], &["--sort", "-k", "--top", "2"]].concat();
        assert_eq!(printed(dir.path(), &first), "k,a,b\n2,1,\n01,9,\n");
    }
    // What is no value and a text that is called like it are columns of their own.
    write(dir.path(), "null.csv", b"k,p,v\n1,,5\n1,null,6\n1,b,7\n");
    for (file, want) in [
        ("null.csv", "k,\"\",b,null\n1,5,7,6\n"),
        ("n.csv", "k,a,b\n01,9,\n1,5,7\n1.0,6,8\n2,1,\n"),
    ] {
        let args = ["-k", "k,p", "-a", "sum:v", "--pivot", "p", file];
        assert_eq!(printed(dir.path(), &args), want);
    }
    for order in ["-sum(v)", "-sum(v):desc", "sum(v):desc", "-sum_v:desc"] {
        let args = [
            "-k", "k", "-a", "sum:v", "--sort", order, "--top", "1", "n.csv",
        ];
        assert_eq!(printed(dir.path(), &args), "k,sum_v\n1.0,14\n", "{order}");
    }
    // A column that is called like a product isn't one.
    write(dir.path(), "q.csv", b"k,a,b,a*b\nx,1,2,100\ny,3,4,200\n");
    for (items, kept) in [
        ("sum(\"a*b\") as s,sum(a*b) as u", "k,s,u\n"),
        ("sum(a*b) as u,sum(\"a*b\") as s", "k,u,s\n"),
    ] {
        let args = ["-k", "k", "-a", items, "--having", "sum(a*b) > 50", "q.csv"];
        assert_eq!(printed(dir.path(), &args), kept);
        let args = [
            "-k",
            "k",
            "-a",
            items,
            "--having",
            "sum(\"a*b\") > 50",
            "--top",
            "1",
            "q.csv",
        ];
        assert_eq!(printed(dir.path(), &args).lines().count(), 2);
    }
}

/// Where all groups are in memory, no file is written.
#[test]
fn a_total_needs_no_directory() {
    let dir = dir();
    let mut text = String::from("k,v\n");
    (0..60_000).for_each(|row| text += &format!("k{row},{}\n", row % 7));
    write(dir.path(), "many.csv", text.as_bytes());
    for (items, total) in [
        ("sum:v", "total,179994"),
        ("median:v,distinct:k", "total,3.00,60000"),
    ] {
        let args = [
            "aggregate",
            "-k",
            "k",
            "-a",
            items,
            "--total",
            "--top",
            "1",
            "many.csv",
        ];
        let mut command = ringfold(args);
        let ended = end(command.current_dir(dir.path()).env("TMPDIR", "/nowhere"));
        let got = String::from_utf8(ended.answer()).unwrap();
        assert_eq!(got.lines().last(), Some(total));
    }
}

fn printed(dir: &Path, args: &[&str]) -> String {
    let args = [&["aggregate"], args].concat();
    let (answer, _) = end(ringfold(args).current_dir(dir)).answer_and_notices();
    String::from_utf8(answer).unwrap()
}
