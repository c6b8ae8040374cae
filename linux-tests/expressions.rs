//! Values that are computed: random expressions against Python's fractions, in every engine; what is refused and reported.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::probe::{Feature, skips};
use crate::support::{Random, dir, end, end_of, feed, ringfold, write};

/// An expression as it is written here and in Python.
struct Both(String, String);

fn both(ours: impl Into<String>, python: impl Into<String>) -> Both {
    Both(ours.into(), python.into())
}

/// `name(a, b, ...)`, called `python` there.
fn call(name: &str, python: &str, arguments: Vec<Both>) -> Both {
    let (mut ours, mut theirs) = (format!("{name}("), format!("{python}("));
    for (at, Both(own, other)) in arguments.into_iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        write!(ours, "{comma}{own}").unwrap();
        write!(theirs, "{comma}{other}").unwrap();
    }
    Both(ours + ")", theirs + ")")
}

fn number(random: &mut Random, depth: u64) -> Both {
    if depth == 0 {
        return match random.below(4) {
            0 => both("a", "num(r[0])"),
            1 => both("b", "num(r[1])"),
            2 => {
                let literal = random.one_of(&["0", "1", "2.5", "-3", "0.125", "100", "1e3"]);
                both(format!("({literal})"), format!("F('{literal}')"))
            }
            _ => both("length(s)", "length(txt(r[2]))"),
        };
    }
    let depth = depth - 1;
    let of = |random: &mut Random| number(random, depth);
    match random.below(17) {
        0..4 => {
            let operator = random.one_of(&["+", "-", "*"]);
            let (one, two) = (of(random), of(random));
            let python = format!("arithmetic('{operator}', {}, {})", one.1, two.1);
            both(format!("({} {operator} {})", one.0, two.0), python)
        }
        4 => {
            let (one, two) = (of(random), of(random));
            let python = format!("over({}, {})", one.1, two.1);
            both(format!("({} / nullif({}, 0))", one.0, two.0), python)
        }
        5 => {
            let inner = of(random);
            both(format!("-({})", inner.0), format!("negative({})", inner.1))
        }
        6 => {
            let name = random.one_of(&["abs", "sign", "floor", "ceil", "round", "trunc"]);
            call(name, &format!("{name}_"), vec![of(random)])
        }
        7 => {
            let digits = random.one_of(&["1", "2", "-1", "0"]);
            let inner = of(random);
            let python = format!("round_({}, {digits})", inner.1);
            both(format!("round({}, {digits})", inner.0), python)
        }
        8 => call("least", "least", vec![of(random), of(random)]),
        9 => call("greatest", "greatest", vec![of(random), of(random)]),
        10 => call("coalesce", "coalesce", vec![of(random), of(random)]),
        11 => call("nullif", "nullif", vec![of(random), of(random)]),
        12 => {
            let (one, two) = (of(random), of(random));
            let python = format!("mod({}, {})", one.1, two.1);
            both(format!("mod({}, nullif({}, 0))", one.0, two.0), python)
        }
        13 => {
            let width = random.one_of(&["0.25", "3", "10"]);
            let inner = of(random);
            let python = format!("bin_({}, F('{width}'))", inner.1);
            both(format!("bin({}, {width})", inner.0), python)
        }
        14 => call("length", "length", vec![text(random, depth)]),
        _ => {
            let condition = condition(random, depth);
            let (one, two) = (of(random), of(random));
            call("if", "choice", vec![condition, one, two])
        }
    }
}

fn text(random: &mut Random, depth: u64) -> Both {
    if depth == 0 {
        return match random.below(3) {
            0 => both("s", "txt(r[2])"),
            1 => both("t", "txt(r[3])"),
            _ => {
                let literal = random.one_of(&["x", "é", "ab", "-"]);
                both(format!("'{literal}'"), format!("'{literal}'"))
            }
        };
    }
    let depth = depth - 1;
    let of = |random: &mut Random| text(random, depth);
    match random.below(12) {
        0 => call("upper", "upper", vec![of(random)]),
        1 => call("lower", "lower", vec![of(random)]),
        2 | 3 => {
            let name = random.one_of(&["left", "right"]);
            let count = random.one_of(&["0", "1", "2", "-1", "9"]);
            let inner = of(random);
            let python = format!("{name}({}, {count})", inner.1);
            both(format!("{name}({}, {count})", inner.0), python)
        }
        4 => {
            let places = random.one_of(&["1, 2", "2, 1", "3, 9", "-2, 1"]);
            let inner = of(random);
            let python = format!("substr({}, {places})", inner.1);
            both(format!("substr({}, {places})", inner.0), python)
        }
        5 => call(
            "replace",
            "replace",
            vec![of(random), both("'a'", "'a'"), of(random)],
        ),
        6 => {
            let (one, two) = (of(random), of(random));
            both(
                format!("({} || {})", one.0, two.0),
                format!("join({}, {})", one.1, two.1),
            )
        }
        7 => {
            // Not a field's digits as they stand there.
            let inner = number(random, depth);
            let python = format!("arithmetic('*', {}, F(1))", inner.1);
            let product = both(format!("({} * 1)", inner.0), python);
            call("concat", "concat", vec![of(random), product])
        }
        8 => call("coalesce", "coalesce", vec![of(random), of(random)]),
        9 => call("nullif", "nullif", vec![of(random), of(random)]),
        _ => {
            let condition = condition(random, depth);
            let (one, two) = (of(random), of(random));
            let ours = format!(
                "case when {} then {} else {} end",
                condition.0, one.0, two.0
            );
            both(
                ours,
                format!("choice({}, {}, {})", condition.1, one.1, two.1),
            )
        }
    }
}

fn condition(random: &mut Random, depth: u64) -> Both {
    let depth = depth.saturating_sub(1);
    match random.below(10) {
        0..4 => {
            let sign = random.one_of(&["=", "!=", "<", "<=", ">", ">="]);
            let (one, two) = match random.below(2) {
                0 => (number(random, depth), number(random, depth)),
                _ => (text(random, depth), text(random, depth)),
            };
            // Two values that are constant aren't compared.
            let one = match one.0.contains(['a', 'b', 's', 't']) && !one.0.starts_with('\'') {
                true => one,
                false => both("a", "num(r[0])"),
            };
            let is_number = one.1.starts_with("num") != two.1.starts_with("num") && one.0 == "a";
            let two = if is_number {
                both("b", "num(r[1])")
            } else {
                two
            };
            let python = format!("compare('{sign}', {}, {})", one.1, two.1);
            both(format!("({} {sign} {})", one.0, two.0), python)
        }
        4 => {
            let inner = number(random, depth);
            let inner = match inner.0.contains(['a', 'b', 's', 't']) {
                true => inner,
                false => both("b", "num(r[1])"),
            };
            let python = format!("between({}, -2, F('2.5'))", inner.1);
            both(format!("({} between -2 and 2.5)", inner.0), python)
        }
        5 => both("(s is null)", "(txt(r[2]) is None)"),
        6 => both("t like '%a_'", "like(txt(r[3]))"),
        7 => both("contains(s, 'b')", "contains(txt(r[2]), 'b')"),
        8 if depth > 0 => {
            let inner = condition(random, depth);
            both(
                format!("(not {})", inner.0),
                format!("negation({})", inner.1),
            )
        }
        _ => {
            let word = random.one_of(&["and", "or"]);
            let one = both("(a > 1)", "compare('>', num(r[0]), F(1))");
            let two = condition(random, depth);
            let python = format!("both('{word}', {}, {})", one.1, two.1);
            both(format!("({} {word} {})", one.0, two.0), python)
        }
    }
}

const PYTHON: &str = r#"
import sys, json, math
from fractions import Fraction as F
num = lambda s: None if s == "" else F(s)
txt = lambda s: None if s == "" else s
def strict(of):
    def wrapped(*values):
        if any(value is None for value in values): return None
        value = of(*values)
        return None if value == "" else value
    return wrapped
def half_away(x): return math.floor(abs(x) + F(1, 2)) * (1 if x >= 0 else -1)
def stored(x):
    if x.denominator == 1: return str(x.numerator)
    d, k = x.denominator, 0
    while d % 10 == 0: d //= 10
    while d % 2 == 0: d //= 2
    while d % 5 == 0: d //= 5
    if d == 1 and QUOTIENT is False:
        digits = 0
        while (x * 10 ** digits).denominator != 1: digits += 1
    else:
        zeros = 36 - len(str(int(abs(x) * 10 ** 36)))
        digits = min(12 + max(zeros, 0), 36)
    units = half_away(x * 10 ** digits)
    text = str(abs(units)).rjust(digits + 1, "0")
    text = text[:len(text) - digits] + "." + text[len(text) - digits:] if digits else text
    if "." in text: text = text.rstrip("0").rstrip(".")
    return ("-" if units < 0 else "") + text
def show(value):
    if value is None or value == "": return ""
    if value is True: return "true"
    if value is False: return "false"
    return stored(F(value)) if not isinstance(value, str) else value
arithmetic = strict(lambda sign, a, b: a + b if sign == "+" else a - b if sign == "-" else a * b)
over = lambda a, b: None if a is None or b is None or b == 0 else a / b
negative = strict(lambda a: -a)
abs_ = strict(abs)
sign_ = strict(lambda a: F((a > 0) - (a < 0)))
floor_ = strict(lambda a: F(math.floor(a)))
ceil_ = strict(lambda a: F(math.ceil(a)))
trunc_ = strict(lambda a: F(math.trunc(a)))
round_ = lambda a, digits=0: None if a is None else F(half_away(a * F(10) ** digits)) / F(10) ** digits
def known(values): return [value for value in values if value is not None]
least = lambda *values: min(known(values), default=None)
greatest = lambda *values: max(known(values), default=None)
coalesce = lambda *values: next(iter(known(values)), None)
nullif = lambda a, b: None if a is not None and b is not None and a == b else a
mod = lambda a, b: None if a is None or b is None or b == 0 else a - b * math.trunc(a / b)
bin_ = strict(lambda a, width: F(math.floor(a / width)) * width)
length = strict(lambda s: F(len(s)))
upper, lower = strict(str.upper), strict(str.lower)
left = strict(lambda s, n: s[:n] if n >= 0 else s[:max(len(s) + n, 0)])
right = strict(lambda s, n: s[max(len(s) - n, 0):] if n >= 0 else s[-n:])
def substr(s, at, count):
    if s is None: return None
    at = len(s) + at if at < 0 else at - 1
    return s[max(at, 0):max(at + count, 0)] or None
replace = lambda s, a, b: None if s is None else (s.replace(a, b or "") or None)
join = strict(lambda a, b: a + b)
concat = lambda *values: "".join(show(value) for value in values) or None
choice = lambda condition, one, two: one if condition is True else two
signs = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
         "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
def compare(sign, a, b):
    if a is None or b is None: return None
    if isinstance(a, str): a, b = a.encode(), b.encode()
    return signs[sign](a, b)
between = strict(lambda a, low, high: low <= a <= high)
like = strict(lambda s: len(s) > 1 and s[-2] == "a")
contains = strict(lambda s, part: part in s)
negation = lambda a: None if a is None else not a
def both(word, a, b):
    end = word == "or"
    if a is end or b is end: return end
    return None if a is None or b is None else not end
task = json.load(sys.stdin)
for expression in task["expressions"]:
    QUOTIENT = "over(" in expression
    for r in task["rows"]:
        print(show(eval(expression)).encode().hex() + ".")
"#;

fn rows(random: &mut Random) -> Vec<[&'static str; 4]> {
    const NUMBERS: &[&str] = &[
        "1", "2.50", "-3", "0", "", "17.125", "0.001", "999999", "-0.5",
    ];
    const TEXTS: &[&str] = &["abc", "Bern", "", "é", "xax", "a", "Zürich"];
    let row = |random: &mut Random| {
        let numbers = [random.one_of(NUMBERS), random.one_of(NUMBERS)];
        [
            numbers[0],
            numbers[1],
            random.one_of(TEXTS),
            random.one_of(TEXTS),
        ]
    };
    (0..40).map(|_| row(random)).collect()
}

/// The rows of an answer of one column beside the row's number.
fn computed(path: &Path, expression: &str, flags: &[&str]) -> Vec<String> {
    let aggregate = format!("first({expression}) as value");
    let ended = end(
        ringfold(["aggregate", "-k", "n", "-a", &aggregate, "-f", "tsv"])
            .args(flags)
            .arg(path),
    );
    assert_eq!(ended.code, Some(0), "{expression}: {}", ended.stderr);
    let text = String::from_utf8(ended.stdout).unwrap();
    let values = text.lines().skip(1);
    values
        .map(|line| line.split_once('\t').unwrap().1.into())
        .collect()
}

#[test]
fn random_values_are_those_of_python() {
    if skips("random_values_are_those_of_python", &[Feature::Python]) {
        return;
    }
    let dir = dir();
    let mut random = Random(77);
    let rows = rows(&mut random);
    let mut csv = String::from("n,a,b,s,t\n");
    for (at, row) in rows.iter().enumerate() {
        writeln!(csv, "{},{}", 100 + at, row.join(",")).unwrap();
    }
    let path = write(dir.path(), "rows.csv", csv.as_bytes());
    let mut expressions: Vec<Both> = Vec::new();
    while expressions.len() < 120 {
        let depth = 1 + random.below(3);
        let one = match random.below(5) {
            0 | 1 => number(&mut random, depth),
            2 | 3 => text(&mut random, depth),
            _ => condition(&mut random, depth),
        };
        // One that is constant is refused.
        if ["a", "b", "s", "t"].iter().any(|name| {
            let is_name =
                |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '\'';
            one.0
                .split(|letter| !is_name(letter))
                .any(|word| word == *name)
        }) {
            expressions.push(one);
        }
    }
    let quoted = |text: &String| serde_json::to_string(text).unwrap();
    let task = format!(
        "{{\"rows\": {}, \"expressions\": [{}]}}",
        serde_json::to_string(&rows).unwrap(),
        expressions
            .iter()
            .map(|one| quoted(&one.1))
            .collect::<Vec<_>>()
            .join(",")
    );
    let mut python = Command::new("python3");
    python.args(["-c", PYTHON]).stdin(Stdio::piped());
    let mut child = python
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    feed(&mut child, task.into_bytes());
    let want = String::from_utf8(end_of(child).answer()).unwrap();
    let mut want = want.lines();
    for (at, Both(ours, python)) in expressions.iter().enumerate() {
        let want: Vec<String> = (0..rows.len())
            .map(|_| {
                let hex = want.next().unwrap().trim_end_matches('.').as_bytes();
                let byte = |pair: &[u8]| {
                    u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()
                };
                String::from_utf8(hex.chunks(2).map(byte).collect()).unwrap()
            })
            .collect();
        let ways: [&[&str]; 3] = [
            &[],
            &["--engine", "pread", "--block-size", "64"],
            &["--comment", "#", "--threads", "1"],
        ];
        // A number that is a field's is as it stands there.
        let shortest = |text: &String| match text.parse::<f64>() {
            Ok(_) if text.contains('.') => {
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            }
            _ => text.clone(),
        };
        let want: Vec<String> = want.iter().map(shortest).collect();
        let got: Vec<String> = computed(&path, ours, ways[at % 3])
            .iter()
            .map(shortest)
            .collect();
        assert_eq!(got, want, "{ours}\n{python}");
    }
}

fn printed(path: &Path, args: &[&str]) -> String {
    let ended = end(ringfold(["aggregate"]).args(args).arg(path));
    String::from_utf8(ended.answer()).unwrap()
}

const ORDERS: &[u8] = b"city,price,qty,x-ray,price (net),day\n\
    Bern,1.50,2,1,7,2026-03-12\n\
    Oslo,20,1,2,8,2026-03-13\n\
    Bern,2.25,,3,9,2026-04-01\n";

#[test]
fn items_are_columns_or_values() {
    let dir = dir();
    let path = write(dir.path(), "orders.csv", ORDERS);
    for (args, want) in [
        (
            &[
                "-k",
                "upper(city) as town,qty",
                "-a",
                "sum(price * qty) as revenue,count",
            ][..],
            "town,qty,revenue,count\nBERN,\"\",,1\nBERN,2,3.00,1\nOSLO,1,20.00,1\n",
        ),
        // Names of the header, whatever they look like.
        (&["-k", "x-ray"], "x-ray,count\n1,1\n2,1\n3,1\n"),
        (&["-a", "sum:price (net)"], "sum_price (net)\n24\n"),
        (
            &["-a", "sum(\"price (net)\" - \"x-ray\")"],
            "\"sum(\"\"price (net)\"\" - \"\"x-ray\"\")\"\n18\n",
        ),
        (&["-a", "sum:price*qty"], "sum:price*qty\n23.00\n"),
        (&["-a", "sum(price) as total"], "total\n23.75\n"),
        (
            &["-a", "sum(price),p50(qty)"],
            "sum_price,p50_qty\n23.75,1.50\n",
        ),
        (
            &["-k", "city as town", "-a", "sum:price as total"],
            "town,total\nBern,3.75\nOslo,20.00\n",
        ),
        (
            &["-k", "date_trunc('month', day)"],
            "\"date_trunc('month', day)\",count\n2026-03,2\n2026-04,1\n",
        ),
        (&["-k", "day@month as m"], "m,count\n2026-03,2\n2026-04,1\n"),
        (
            &["-k", "qty > 1 as many", "-a", "count,count_if(price > 2)"],
            "many,count,count_if(price > 2)\n\"\",1,1\nfalse,1,1\ntrue,1,0\n",
        ),
        (
            &[
                "-a",
                "sum(price) filter (where city = 'Bern') as bern,count(*) filter (where qty is null)",
            ],
            "bern,count(*) filter (where qty is null)\n3.75,1\n",
        ),
        (
            &[
                "-a",
                "count",
                "--where",
                "price > qty and price * 2 between 4 and 40",
            ],
            "count\n1\n",
        ),
        (
            &["-a", "first('a,b' || city)"],
            "\"first('a,b' || city)\"\n\"a,bBern\"\n",
        ),
        (
            &["-a", "mean(price / nullif(qty, 0)) as per"],
            "per\n10.3750\n",
        ),
        // One quotient beside several numbers, and one function with several patterns.
        (
            &[
                "-a",
                "count_if(price / 7 > 0.2) as a,count_if(price / 7 > 0.3) as b,count_if(price / 7 > 3) as c",
            ],
            "a,b,c\n3,2,0\n",
        ),
        (
            &[
                "-a",
                "count",
                "--where",
                "price / 7 between 0.3 and 0.4 and not price / 7 > 0.35",
            ],
            "count\n1\n",
        ),
        (
            &[
                "-a",
                "count_if(regexp_matches(city, '^B')) as a,count_if(regexp_matches(city, '^O')) as b",
            ],
            "a,b\n2,1\n",
        ),
    ] {
        assert_eq!(printed(&path, args), want, "{args:?}");
    }
    let numbered = write(dir.path(), "numbered.csv", b"Bern,2\nOslo,3\n");
    let args = ["-k", "lower($1)", "-a", "sum($2 * $2)"];
    let want = "lower($1),sum($2 * $2)\nbern,4\noslo,9\n";
    assert_eq!(printed(&numbered, &args), want);
    let lines = write(
        dir.path(),
        "lines.jsonl",
        b"{\"a-b\":1,\"c\":{\"d\":2.5}}\n{\"a-b\":3,\"c\":{\"d\":4}}\n",
    );
    let args = ["-k", "a-b", "-a", "sum(c.d * 2) as twice"];
    assert_eq!(printed(&lines, &args), "a-b,twice\n1,5.0\n3,8.0\n");
    let args = [
        "-k",
        "a-b as key",
        "-a",
        "sum:a-b,sum(\"a-b\" - c.d) as less",
    ];
    assert_eq!(
        printed(&lines, &args),
        "key,sum_a-b,less\n1,1,-1.5\n3,3,-1.0\n"
    );
}

#[test]
fn what_cannot_be_computed_is_told() {
    let dir = dir();
    let path = write(
        dir.path(),
        "bad.csv",
        b"city,price,qty\nBern,1.5,2\nOslo,x,0\nRome,3,0\n",
    );
    for (args, want) in [
        (
            &["-a", "sum(price * qty)"][..],
            "byte 26-34 (line 3): `x` is not a number (column `price`)",
        ),
        (
            &["-a", "sum(price / qty)", "--where", "city != 'Oslo'"],
            "byte 35-43 (line 4): it is divided by zero: nullif(divisor, 0) makes that null (column `sum(price / qty)`)",
        ),
        (&["-k", "year(city)"], "isn't a time"),
    ] {
        let ended = end(ringfold(["aggregate"]).args(args).arg(&path));
        assert_eq!((ended.code, ended.stdout.len()), (Some(1), 0), "{args:?}");
        assert!(ended.stderr.contains(want), "{args:?}: {}", ended.stderr);
    }
    let lenient = [
        "aggregate",
        "-a",
        "count,sum(price / qty)",
        "--on-error",
        "null",
    ];
    let (answer, notices) = end(ringfold(lenient).arg(&path)).answer_and_notices();
    assert_eq!(answer, b"count,sum(price / qty)\n3,0.75\n");
    assert!(
        notices.contains("2 values taken for no value, the first"),
        "{notices}"
    );
    let filter = ["aggregate", "-a", "count", "--where", "price / qty > 0.5"];
    let (answer, notices) = end(ringfold(filter).arg(&path)).answer_and_notices();
    assert_eq!(answer, b"count\n1\n");
    assert!(
        notices.contains("2 records left out, because --where can't compare"),
        "{notices}"
    );
    for (args, want) in [
        (
            &["-k", "lower(city"][..],
            "--key: column 6: the parenthesis that opens here is never closed",
        ),
        (
            &["-k", "lower(town)"],
            "--key: column 7: no column is called `town`",
        ),
        (
            &["-a", "sum(price * 'x')"],
            "--aggregate: column 9: `*` takes a number here, and this is a text",
        ),
        (
            &["-a", "sum(2)"],
            "a column is missing: its number is written $3",
        ),
        (&["-a", "lower(city)"], "there is no aggregate `lower`"),
        (&["-a", "sum()"], "`sum` needs a column"),
        (
            &["-a", "count", "--where", "foo(city) = 1"],
            "there is no function `foo`",
        ),
    ] {
        let ended = end(ringfold(["aggregate"]).args(args).arg(&path));
        assert_eq!((ended.code, ended.stdout.len()), (Some(2), 0), "{args:?}");
        assert!(ended.stderr.contains(want), "{args:?}: {}", ended.stderr);
    }
}

/// Numbers that are computed of aggregates: in order, in conditions, and where groups outgrow the memory.
#[test]
fn the_answer_is_computed_with() {
    let dir = dir();
    let path = write(dir.path(), "orders.csv", ORDERS);
    for (args, want) in [
        (
            &["-k", "city", "-a", "sum(price) / sum(qty) as per,count"][..],
            "city,per,count\nBern,1.875000,2\nOslo,20.000000,1\n",
        ),
        (
            &[
                "-k",
                "city",
                "-a",
                "count_if(price > 2) / count(*) as share",
                "--sort",
                "-share",
            ],
            "city,share\nOslo,1.000000\nBern,0.500000\n",
        ),
        (
            &[
                "-k",
                "city",
                "-a",
                "count,round(mean(price) * 2, 1) as twice",
                "--having",
                "twice < 5",
            ],
            "city,count,twice\nBern,2,3.8\n",
        ),
        (
            &[
                "-a",
                "max(price) - min(price),sum(qty) / (sum(qty) - 3) as none,-count()",
            ],
            "max(price) - min(price),none,-count()\n18.50,,-3\n",
        ),
        (
            &[
                "-a",
                "if(count() > 2, sum(price), 0) as all",
                "--precision",
                "1",
            ],
            "all\n23.8\n",
        ),
    ] {
        assert_eq!(printed(&path, args), want, "{args:?}");
    }
    let args = [
        "-k",
        "city",
        "-a",
        "count,share(count()) as rows,round(share(sum(price)) * 100, 1) as percent",
    ];
    let want = "city,count,rows,percent\nBern,2,0.666667,15.8\nOslo,1,0.333333,84.2\n";
    assert_eq!(printed(&path, &args), want);
    // Of all rows, whatever is shown.
    let args = [&args[..], &["--having", "count = 1"]].concat();
    assert_eq!(
        printed(&path, &args),
        "city,count,rows,percent\nOslo,1,0.333333,84.2\n"
    );
    for (aggregate, want) in [
        ("share(mean(price))", "has a share of a quotient"),
        (
            "sum(price) / foo",
            "`foo` is neither an aggregate, as sum(foo) is, nor a key",
        ),
        ("sum(price) +", "a column is missing"),
        ("upper(first(city))", "`upper(first(city))` is no number"),
        (
            "sum(price) + 'x'",
            "`+` takes a number here, and this is a text",
        ),
    ] {
        let ended = end(ringfold(["aggregate", "-k", "city", "-a", aggregate]).arg(&path));
        assert_eq!(ended.code, Some(2), "{aggregate}");
        assert!(ended.stderr.contains(want), "{aggregate}: {}", ended.stderr);
    }
    let mut many = String::from("key,a,b\n");
    for at in 0..60_000_u64 {
        writeln!(
            many,
            "key {},{},{}",
            at * 7919 % 20_011,
            at % 97,
            1 + at % 13
        )
        .unwrap();
    }
    let many = write(dir.path(), "many.csv", many.as_bytes());
    let aggregate =
        "sum(a) / sum(b) as ratio,count,round(mean(a), 1),share(sum(a)) * 1000000 as ppm";
    for more in [
        &[][..],
        &["--sort", "-ratio"],
        &["--sort", "ratio:desc", "--top", "7"],
        &["--having", "ratio > 5"],
    ] {
        let args = [&["-k", "key", "-a", aggregate][..], more].concat();
        let whole = printed(&many, &args);
        let short = [&args[..], &["--memory", "300K"]].concat();
        assert!(whole.lines().count() > 7);
        let (spilled, _) = end(ringfold(["aggregate"]).args(short).arg(&many)).answer_and_notices();
        assert_eq!(String::from_utf8(spilled).unwrap(), whole, "{more:?}");
    }
    let saved = |range: &str| {
        let to = dir.path().join(range.replace('/', "-"));
        let args = [
            "aggregate",
            "-k",
            "key",
            "-a",
            aggregate,
            "--range",
            range,
            "--single-line",
        ];
        let ended = end(ringfold(args).arg("--save-partial").arg(&to).arg(&many));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        to
    };
    let (one, two) = (saved("1/2"), saved("2/2"));
    let merged = end(ringfold(["merge", "--sort", "-ratio"]).arg(&one).arg(&two)).answer();
    let args = ["-k", "key", "-a", aggregate, "--sort", "-ratio"];
    assert_eq!(String::from_utf8(merged).unwrap(), printed(&many, &args));
}

/// Partials keep what is computed, and those of other expressions aren't merged.
#[test]
fn partials_of_computed_values() {
    let dir = dir();
    let path = write(dir.path(), "orders.csv", ORDERS);
    let saved = |range: &str, name: &str, aggregate: &str| {
        let to = dir.path().join(name);
        let ended = end(ringfold([
            "aggregate",
            "-k",
            "upper(city)",
            "-a",
            aggregate,
            "--range",
            range,
        ])
        .args(["--single-line", "--save-partial"])
        .arg(&to)
        .arg(&path));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        to
    };
    let aggregate = "sum(price * qty),mean(price * 2),count_if(qty > 1)";
    let (one, two) = (
        saved("1/2", "one", aggregate),
        saved("2/2", "two", aggregate),
    );
    let merged = end(ringfold(["merge"]).arg(&one).arg(&two)).answer();
    let args = ["-k", "upper(city)", "-a", aggregate];
    assert_eq!(String::from_utf8(merged).unwrap(), printed(&path, &args));
    let other = saved(
        "2/2",
        "other",
        "sum(price * qty),mean(price * 3),count_if(qty > 1)",
    );
    end(ringfold(["merge"]).arg(&one).arg(&other)).failure(1);
}

/// Windows with nulls before windows without: which numbers are null is that of each window.
#[test]
fn nulls_of_computed_numbers_are_those_of_their_window() {
    let dir = dir();
    for length in [1, 20, 400] {
        let key = "k".repeat(length);
        let text = format!("key,v\n{key},\n{key},0.25\n{key},0.50\n{key},\n{key},2\n");
        let path = write(dir.path(), "windows.csv", text.as_bytes());
        let asked = "sum(v + 0) as a,mean(v * 1) as b,first(v + 0) as c,p50(v + 0) as d,distinct(v + 0) as e,\
                     count(v + 0) as f,max(if(v > 1, v, v + 1)) as g";
        for block in ["1", "64", "4096"] {
            let args = [
                "-k",
                "key",
                "-a",
                asked,
                "--engine",
                "read",
                "-j1",
                "--block-size",
                block,
            ];
            let want = format!("key,a,b,c,d,e,f,g\n{key},2.75,0.9167,0.25,0.5000,3,3,2.00\n");
            assert_eq!(printed(&path, &args), want, "{length} {block}");
        }
    }
}
