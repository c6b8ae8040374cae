//! Aggregates of several columns and those that are composed of others: random records against Python's fractions, in every
//! engine and form of input.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use crate::probe::{Feature, skips};
use crate::support::{dir, end, end_of, feed, ringfold, write};

const ITEMS: &[&str] = &[
    "arg_max(s, a)",
    "arg_min(s, a)",
    "arg_max(a, b * -1)",
    "arg_min(s, a) filter (where b > 1)",
    "weighted_mean(a, b)",
    "weighted_mean(a * 2, b + 1) filter (where s != 'Bern')",
    "covar(a, b)",
    "covar_pop(a, b)",
    "corr(a, b)",
    "corr(b, b * 3 - 1)",
    "slope(a, b)",
    "geometric_mean(c)",
    "iqr(a)",
    "iqr(b) filter (where a is not null)",
    "distinct(s, b)",
    "distinct(a, b, s)",
    "round(corr(a, b) * 100, 1)",
    "top(3, s)",
    "top1(a) filter (where s is not null)",
    "values(s)",
    "values(a)",
    "histogram(a, 2.5)",
];

/// What Python makes of the same records.
const PYTHON: &str = r#"
import sys, json, math
from fractions import Fraction as F
from decimal import Decimal, getcontext
getcontext().prec = 120
rows = json.load(sys.stdin)
num = lambda s: None if s == "" else F(s)
def printed(x, digits=9):
    if x is None: return ""
    units = math.floor(abs(x) * 10 ** digits + F(1, 2)) * (1 if x >= 0 else -1)
    text = str(abs(units)).rjust(digits + 1, "0")
    text = text[:-digits] + "." + text[-digits:] if digits else text
    return ("-" if units < 0 else "") + text
def arg(pairs, sign):
    pairs = [(sign * x, value.encode()) for value, x in pairs if value not in ("", None) and x is not None]
    return min(pairs)[1].decode() if pairs else ""
def both(xs, ys): return [(x, y) for x, y in zip(xs, ys) if x is not None and y is not None]
def weighted(xs, ws):
    pairs = both(xs, ws)
    weight = sum(w for _, w in pairs)
    return sum(x * w for x, w in pairs) / weight if weight else None
def covariance(pairs, less=0):
    n = len(pairs)
    if n <= less: return None
    mx, my = sum(x for x, _ in pairs) / F(n), sum(y for _, y in pairs) / F(n)
    return sum((x - mx) * (y - my) for x, y in pairs) / (n - less)
def variance(xs): return covariance([(x, x) for x in xs])
def corr(pairs):
    if not pairs: return None
    vx, vy = variance([x for x, _ in pairs]), variance([y for _, y in pairs])
    if not vx or not vy: return None
    c = covariance(pairs)
    square = c * c / (vx * vy)
    root = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
    # The root is a double.
    return F(float(root)) * (1 if c >= 0 else -1)
def slope(pairs):
    if not pairs: return None
    v = variance([x for _, x in pairs])
    return covariance(pairs) / v if v else None
def geometric(xs):
    logs = [F(repr(math.log(float(x)))) for x in xs if x is not None]
    return F(repr(math.exp(float(sum(logs) / len(logs))))) if logs else None
def percentile(xs, share):
    at = (len(xs) - 1) * share
    low = math.floor(at)
    high = min(low + 1, len(xs) - 1)
    return xs[low] + (xs[high] - xs[low]) * (at - low)
def iqr(xs):
    xs = sorted(x for x in xs if x is not None)
    return percentile(xs, F(3, 4)) - percentile(xs, F(1, 4)) if xs else None
def short(x):
    text = printed(x, 12)
    return text.rstrip("0").rstrip(".")
def js(value): return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("\\", "\\\\") if value else ""
def counts(values):
    counted = {}
    for value in values:
        if value not in ("", None): counted[value] = counted.get(value, 0) + 1
    return counted
def top(k, values): return js(dict(sorted(counts(values).items(), key=lambda of: (-of[1], of[0].encode()))[:k]))
def listed(values):
    values = [value for value in set(values) if value]
    try: return js(sorted(values, key=lambda value: (F(value), value.encode())))
    except ValueError: return js(sorted(values, key=str.encode))
def histogram(xs, width):
    bins = counts(None if x is None else math.floor(x / width) * width for x in xs)
    return js({short(x): bins[x] for x in sorted(bins)})
def distinct(tuples): return str(len({t for t in tuples if "" not in t}))
for g in sorted({r[0] for r in rows}):
    own = [r for r in rows if r[0] == g]
    s = [r[1] for r in own]
    at, bt, ct = ([r[i] for r in own] for i in (2, 3, 4))
    a, b, c = ([num(x) for x in column] for column in (at, bt, ct))
    pairs = both(a, b)
    ab = corr(pairs)
    rounded = None if ab is None else printed(ab * 100, 1)
    line = [
        arg(zip(s, a), -1), arg(zip(s, a), 1),
        arg([(t, x) for t, x in zip(at, b)], 1),
        arg([(t, x) for t, x, y in zip(s, a, b) if y is not None and y > 1], 1),
        printed(weighted(a, b)),
        printed(weighted([None if x is None or t in ("Bern", "") else 2 * x for x, t in zip(a, s)],
                         [None if x is None else x + 1 for x in b])),
        printed(covariance(pairs, 1)), printed(covariance(pairs) if pairs else None), printed(ab),
        printed(corr([(y, 3 * y - 1) for y in b if y is not None])), printed(slope(pairs)),
        printed(geometric(c)), printed(iqr(a)),
        printed(iqr([y for x, y in zip(a, b) if x is not None])),
        distinct(zip(s, bt)), distinct(zip(at, bt, s)),
        "" if rounded is None else printed(F(rounded)),
        top(3, s), top(1, [x for x, t in zip(at, s) if t]), listed(s), listed(at), histogram(a, F("2.5")),
    ]
    print("\t".join([g] + line))
"#;

/// Numbers in a sequence that looks random.
struct Random(u64);

impl Random {
    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        all[(self.0 >> 33) as usize % all.len()]
    }
}

/// Groups of many records, of one, of equal numbers, of huge ones and of none.
fn records() -> Vec<[&'static str; 5]> {
    const TEXTS: &[&str] = &["Bern", "Oslo", "", "é, x", "a\"b", "12:a", "1", "2:a1"];
    const NUMBERS: &[&str] = &[
        "1", "2.50", "-3", "0", "", "17.125", "0.001", "2.5", "-0.5", "99",
    ];
    const HUGE: &[&str] = &[
        "123456789012345678.25",
        "-99999999999999999999",
        "0.00000000000000001",
        "1e-12",
        "",
    ];
    let mut random = Random(50);
    let mut records = Vec::new();
    for _ in 0..700 {
        let group = random.one_of(&["a", "b", "c", "constant", "huge"]);
        let [a, b] = match group {
            "constant" => ["7", random.one_of(NUMBERS)],
            "huge" => [random.one_of(HUGE), random.one_of(NUMBERS)],
            _ => [random.one_of(NUMBERS), random.one_of(NUMBERS)],
        };
        let c = random.one_of(&["1", "2", "3.5", "", "0.25", "1000"]);
        records.push([group, random.one_of(TEXTS), a, b, c]);
    }
    records.push(["one", "x", "3", "4", "5"]);
    records.push(["none", "", "", "", ""]);
    records
}

fn text(records: &[[&str; 5]]) -> String {
    let mut text = String::from("g,s,a,b,c\n");
    for [g, s, a, b, c] in records {
        let s = s.replace('"', "\"\"");
        writeln!(text, "{g},\"{s}\",{a},{b},{c}").unwrap();
    }
    text
}

fn python(script: &str, records: &[[&str; 5]]) -> String {
    let mut python = Command::new("python3");
    let python = python.args(["-c", script]).stdin(Stdio::piped());
    let python = python.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = python.spawn().unwrap();
    feed(&mut child, serde_json::to_vec(records).unwrap());
    String::from_utf8(end_of(child).answer()).unwrap()
}

fn same(got: &[u8], want: &str, what: &str) {
    let got = String::from_utf8_lossy(got);
    let mut header = got.lines().next().unwrap().split('\t').skip(1);
    let (got, want) = (got.lines().skip(1), want.lines());
    assert_eq!(got.clone().count(), want.clone().count(), "{what}");
    let got: Vec<Vec<&str>> = got.map(|line| line.split('\t').collect()).collect();
    let want: Vec<Vec<&str>> = want.map(|line| line.split('\t').collect()).collect();
    for (column, item) in (1..).zip(header.by_ref()) {
        for (got, want) in got.iter().zip(&want) {
            assert_eq!(got[column], want[column], "{what}: {item} of {}", want[0]);
        }
    }
}

const SHOWN: [&str; 4] = ["-f", "tsv", "--precision", "9"];

#[test]
fn aggregates_are_those_of_python() {
    if skips("aggregates_are_those_of_python", &[Feature::Python]) {
        return;
    }
    let dir = dir();
    let dir = dir.path();
    let records = records();
    let want = python(PYTHON, &records);
    write(dir, "all.csv", text(&records).as_bytes());
    let (first, second) = records.split_at(300);
    write(dir, "1.csv", text(first).as_bytes());
    write(dir, "2.csv", text(second).as_bytes());
    let mut query = vec!["-k", "g"];
    ITEMS.iter().for_each(|item| query.extend(["-a", item]));
    let run = |args: &[&str]| {
        let mut command = ringfold(["aggregate"]);
        command.args(&query).args(args).current_dir(dir);
        end(&mut command).answer_and_notices().0
    };
    for args in [
        &["all.csv"][..],
        &[
            "--threads",
            "3",
            "--engine",
            "pread",
            "--block-size",
            "100",
            "all.csv",
        ],
        &["--engine", "mmap", "--block-size", "1000", "all.csv"],
        // Records are added one by one.
        &[
            "--comment",
            "#",
            "--max-record",
            "1K",
            "--threads",
            "1",
            "all.csv",
        ],
        &["--on-error", "null", "1.csv", "2.csv"],
        &[
            "--memory",
            "0",
            "--spill-dir",
            ".",
            "--block-size",
            "1K",
            "all.csv",
        ],
    ] {
        same(
            &run(&[&SHOWN[..], args].concat()),
            &want,
            &format!("{args:?}"),
        );
    }
    let merged = |args: &[&str]| {
        let mut command = ringfold(["merge"]);
        command.args(SHOWN).args(args).current_dir(dir);
        end(&mut command).answer_and_notices().0
    };
    run(&["--save-partial", "1.part", "1.csv"]);
    let small = ["--memory", "0", "--spill-dir", "."];
    run(&[&["--save-partial", "2.part"], &small[..], &["2.csv"]].concat());
    same(&merged(&["2.part", "1.part"]), &want, "merged");
    let args = [&small[..], &["1.part", "2.part"]].concat();
    same(&merged(&args), &want, "merged in little memory");
    // The second file comes to what is known of the first.
    run(&["--continue", "all.part", "1.csv"]);
    run(&["--continue", "all.part", "2.csv"]);
    same(&merged(&["all.part"]), &want, "continued");
}

#[test]
fn lists_have_limits() {
    let dir = dir();
    let dir = dir.path();
    let many: String = (0..10_001).map(|n| format!("{n},a\n")).collect();
    write(dir, "many.csv", many.as_bytes());
    write(dir, "most.csv", many.split_once('\n').unwrap().1.as_bytes());
    let small = ["--memory", "0", "--spill-dir", "."];
    let run = |item: &str, args: &[&str]| {
        let mut command = ringfold(["aggregate", "-q", "-a", item]);
        end(command.args(args).current_dir(dir))
    };
    for (item, want) in [
        ("values($1)", "has more than 10000 different values"),
        ("histogram($1, 1)", "has more than 10000 bins"),
    ] {
        for args in [&["many.csv"][..], &[&small[..], &["many.csv"]].concat()] {
            let error = run(item, args).failure(1);
            assert!(error.contains(want), "{error}");
        }
        run(item, &["most.csv"]).answer();
        run(item, &[&small[..], &["most.csv"]].concat()).answer();
    }
    let first = "top1000_1\n\"{\"\"0\"\":1,\"\"1\"\":1,";
    let got = run("top1000:1", &["many.csv"]).answer();
    assert!(got.starts_with(first.as_bytes()));
    for (item, want) in [
        ("top(0, $1)", "`top` is written top(3, x), with up to 1000"),
        (
            "top(1001, $1)",
            "`top` is written top(3, x), with up to 1000",
        ),
        (
            "histogram($1)",
            "`histogram` is written histogram(x, width)",
        ),
        ("arg_max:1", "`arg_max` is written arg_max(value, x)"),
        ("corr($1)", "it is written corr(x, y)"),
        ("sum($1, $2)", "`sum` is of one column"),
        ("values($2) * 2", "this is a list"),
        ("meen($1)", "and no aggregate: these are count, sum"),
        ("share(share(count()))", "has a share of a share"),
    ] {
        let ended = run(item, &["many.csv"]);
        assert_eq!((ended.code, ended.stdout.len()), (Some(2), 0), "{item}");
        assert!(ended.stderr.contains(want), "{item}: {}", ended.stderr);
    }
    // Formats of JSON have lists as they are.
    let list = ["-f", "ndjson", "--where", "$1 < 2", "many.csv"];
    let got = run("values($1) as all,top(1, $2) as most", &list).answer();
    assert_eq!(got, b"{\"all\":[\"0\",\"1\"],\"most\":{\"a\":2}}\n");
}

#[test]
fn rows_and_times_of_several_columns() {
    let dir = dir();
    let dir = dir.path();
    let log = "1.1.1.1 - - [25/Nov/2026:14:00:00 +0100] \"GET /a HTTP/1.1\" 200 5\n\
        1.1.1.1 - - [25/Nov/2026:13:30:00 +0000] \"GET /b HTTP/1.1\" 200 -\n\
        1.1.1.1 - - [24/Nov/2026:23:00:00 +0000] \"GET /c HTTP/1.1\" 200 5\n";
    write(dir, "a.log", log.as_bytes());
    let orders = "city,price,qty\nBern,1.5,2\nBern,20,1\nOslo,7,\nOslo,x,3\nRome,5,1\n";
    write(dir, "orders.csv", orders.as_bytes());
    for (args, want) in [
        // Instants are compared, whatever their zones are.
        (
            &[
                "--log",
                "common",
                "-a",
                "arg_max(path, time) as last,arg_min(path, time)",
                "a.log",
            ][..],
            "last,\"arg_min(path, time)\"\n/b,/c\n",
        ),
        (
            &[
                "-k",
                "city",
                "-a",
                "corr(price, qty) as r",
                "--having",
                "corr(price, qty) is null",
                "--on-error",
                "null",
                "orders.csv",
            ],
            "city,r\nOslo,\nRome,\n",
        ),
        (
            &[
                "-k",
                "city",
                "-a",
                "weighted_mean(price, qty) as mean,iqr:price",
                "--where",
                "price != 'x'",
                "--sort",
                "-weighted_mean(price, qty)",
                "--precision",
                "2",
                "--total",
                "orders.csv",
            ],
            "city,mean,iqr_price\nBern,7.67,9.25\nRome,5.00,0.00\nOslo,,0.00\ntotal,7.00,6.13\n",
        ),
        (
            &[
                "-a",
                "distinct(city, qty) as pairs",
                "--approximate",
                "-q",
                "orders.csv",
            ],
            "pairs\n4\n",
        ),
        (
            &[
                "-a",
                "geometric_mean(qty),geomean:2,corr(qty, qty * 3)",
                "--on-error",
                "null",
                "-q",
                "orders.csv",
            ],
            "geometric_mean(qty),geometric_mean_2,\"corr(qty, qty * 3)\"\n1.565085,5.692425,1.000000\n",
        ),
    ] {
        let mut command = ringfold(["aggregate"]);
        let (got, _) = end(command.args(args).current_dir(dir)).answer_and_notices();
        assert_eq!(String::from_utf8_lossy(&got), want, "{args:?}");
    }
    let mut command = ringfold(["aggregate", "-a", "geometric_mean(qty - 2)", "orders.csv"]);
    let error = end(command.current_dir(dir)).failure(1);
    assert!(
        error.contains("of a number that is more than 0, and this is 0"),
        "{error}"
    );
}
