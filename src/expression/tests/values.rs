//! What values are, and what none is computed of.

use super::*;

/// A row of fields, of which those without a byte and `NA` are null.
struct Row<'a> {
    fields: &'a [&'a str],
    computed: &'a [Formula],
}

impl Record for Row<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, ValueError> {
        Ok(match self.fields.get(column) {
            Some(&("" | "NA")) => Value::Null,
            Some(field) => Value::Text(field.as_bytes().into()),
            None => return self.computed[column - self.fields.len()].value(self),
        })
    }

    fn grammar(&self) -> Grammar {
        Grammar::PLAIN
    }

    fn wants_number(&self, _: usize) -> bool {
        false
    }
}

/// What a value is of a row, or what is wrong with it.
fn value_of(text: &str, fields: &[&str; 4]) -> Result<String, String> {
    let mut names = Names::new();
    let expression = Expression::value(text, KEY).map_err(|error| fault(error).1)?;
    let formula = expression.formula(&mut names);
    let (formula, _) = formula.map_err(|error| fault(error).1)?;
    let row = Row {
        fields,
        computed: &names.computed,
    };
    let mut text = Vec::new();
    match formula.value(&row) {
        Ok(Value::Null) => return Ok("null".into()),
        Ok(_) => {}
        Err(error) => return Err(why(&error)),
    }
    let done = formula.write(&row, &mut text);
    done.map_err(|error| why(&error))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn why(error: &ValueError) -> String {
    match &error.wrong {
        Wrong::Number(why) | Wrong::Time(why) | Wrong::Other(why) => why.clone(),
    }
}

#[test]
fn values() {
    let row = [
        "7.50",
        "Zürich",
        "2026-11-25T13:47:10.5Z",
        "http://ann@x.org:80/a/b/c?q=1&n=%20x#z",
    ];
    for (text, want) in [
        ("a + 1", "8.5"),
        ("a - 0.5 * 3", "6"),
        ("(a - 0.5) * 3", "21"),
        ("-a", "-7.5"),
        ("- -a + -1", "6.5"),
        ("a -1", "6.5"),
        ("a / 3", "2.5"),
        ("a / 7", "1.071428571429"),
        ("a / 7 * 7 = a", "true"),
        ("a % 2", "1.5"),
        ("a/0.00000001", "750000000"),
        ("2 * 3 + a", "13.5"),
        ("a*a", "56.25"),
        ("round(a)", "8"),
        ("round(-a)", "-8"),
        ("round(a / 7, 3)", "1.071"),
        ("floor(-a)", "-8"),
        ("ceil(a)", "8"),
        ("trunc(-a)", "-7"),
        ("abs(-a)", "7.5"),
        ("sign(-a)", "-1"),
        ("mod(a, 4)", "3.5"),
        ("least(a, 9, 3)", "3"),
        ("greatest(a, null, 3)", "7.5"),
        ("bin(a, 2)", "6"),
        ("bin(-a, 2)", "-8"),
        ("log_bin(a * 1000, 10)", "1000"),
        ("log_bin(a / 1000, 10)", "0.001"),
        ("pow(a, 2)", "56.25"),
        ("sqrt(a * 7.5)", "7.5"),
        ("log(a / a * 100)", "2"),
        ("number('1,2' || '34.50', ',') + a", "1242"),
        ("upper(b)", "ZÜRICH"),
        ("lower(b)", "zürich"),
        ("length(b)", "6"),
        ("octet_length(b)", "7"),
        ("left(b, 2)", "Zü"),
        ("left(b, -2)", "Züri"),
        ("right(b, 2)", "ch"),
        ("right(b, -2)", "rich"),
        ("substr(b, 2, 3)", "üri"),
        ("substr(b, 2)", "ürich"),
        ("substr(b, -2)", "ch"),
        ("substr(b, 0, 2)", "Z"),
        ("replace(b, 'ü', 'ue')", "Zuerich"),
        ("split('x-y-z' || b, '-', 2)", "y"),
        ("split(b, 'r', -1)", "ich"),
        ("split(b, 'r', 3)", "null"),
        ("trim('  x' || b || ' ')", "xZürich"),
        ("trim(b, 'Zh')", "üric"),
        ("rtrim(b, 'ch')", "Züri"),
        ("ltrim(b, 'Zü')", "rich"),
        ("b || '!' || a", "Zürich!7.50"),
        ("concat(a, null, b)", "7.50Zürich"),
        ("starts_with(b, 'Zü')", "true"),
        ("ends_with(b, 'x')", "false"),
        ("contains(b, 'ric')", "true"),
        ("coalesce(null, b)", "Zürich"),
        ("nullif(a, 7.5)", "null"),
        ("nullif(b, 'x')", "Zürich"),
        ("regexp_extract(b, '[a-z]+')", "rich"),
        ("regexp_extract(b, '(ri)(.)', 2)", "c"),
        ("regexp_replace(b, '(i)(c)', '$2$1')", "Zürcih"),
        ("regexp_matches(b, '^Z')", "true"),
        (
            "case when a > 8 then 'high' when a > 7 then 'mid' else 'low' end",
            "mid",
        ),
        ("case when a > 8 then 'high' end", "null"),
        ("if(b = 'Zürich' and not a > 8, a, 0)", "7.50"),
        ("a between 7 and 8", "true"),
        ("a not between 7 and 8", "false"),
        ("b like 'Z_ri%'", "true"),
        ("b not like '%.%'", "true"),
        ("a is null", "false"),
        ("a > b", "false"),
        ("length(b) > a", "false"),
        ("year($3)", "2026"),
        ("quarter($3) + month($3) + day($3)", "40"),
        ("hour($3) * 60 + minute($3)", "827"),
        ("second($3)", "10"),
        ("weekday($3)", "3"),
        ("epoch($3)", "1795614430.5"),
        ("$3@hour", "2026-11-25T13"),
        ("time_bucket('5 minutes', $3)", "2026-11-25T13:45"),
        ("time_bucket('90 minutes', $3)", "2026-11-25T13:30"),
        ("time_bucket('7 days', $3)", "2026-11-23"),
        ("time_bucket('15 seconds', $3)", "2026-11-25T13:47:00"),
        ("date_trunc('week', $3)", "2026-11-23"),
        ("date_trunc('quarter', $3)", "2026-10"),
        ("date_trunc('year', $3)", "2026"),
        ("url_path($4)", "/a/b/c"),
        ("url_path('/x?y=http://z' || b)", "/x"),
        ("url_host($4)", "x.org"),
        ("url_host('/a' || b)", "null"),
        ("url_query($4, 'q')", "1"),
        ("url_decode(url_query($4, 'n'))", " x"),
        ("url_query($4, 'z')", "null"),
        ("path_prefix($4, 2)", "/a/b"),
        ("path_prefix($4, 9)", "/a/b/c"),
        (
            "ip_prefix(concat('203.0.113.77', left(b, 0)), 24)",
            "203.0.113.0/24",
        ),
        (
            "ip_prefix(concat('2001:db8::77', left(b, 0)), 24, 32)",
            "2001:db8::/32",
        ),
    ] {
        assert_eq!(value_of(text, &row).as_deref(), Ok(want), "{text}");
    }
    let nulls = ["", "NA", "", ""];
    for text in [
        "a + 1",
        "-b",
        "lower(b)",
        "a || 'x'",
        "a > 1",
        "year($3)",
        "url_path($4)",
        "least(a, b)",
    ] {
        assert_eq!(value_of(text, &nulls).as_deref(), Ok("null"), "{text}");
    }
}

#[test]
fn what_no_value_is_computed_of() {
    let long = "o".repeat(400_000);
    let row = ["x", "0", "2026-11", &long];
    for (text, want) in [
        ("a + 1", "`x` is not a number"),
        ("1 / b", "nullif(divisor, 0)"),
        ("sqrt(b - 1)", "no finite value"),
        ("ln(b)", "a number that is more than 0, and this is 0"),
        ("case when a > 1 then 2 end", "`x` is not a number"),
        ("hour($3)", "is a month without a day"),
        ("hour(a)", "isn't a time"),
        ("ip_prefix(a, 8)", "`x` is no IP address"),
        ("bin(b, 0)", "the width isn't more than 0"),
        ("a * 'x'", "`*` takes a number here, and this is a text"),
        ("abs(a > 1)", "takes a number here, and this is a condition"),
        ("nothing(a)", "there is no function `nothing`"),
        ("substr(a)", "it is written substr(text, from[, count])"),
        (
            "regexp_extract(a, b)",
            "a regular expression in single quotes is missing",
        ),
        ("date_trunc('eon', a)", "units are second, minute"),
        ("a +", "a column is missing"),
        ("c + 1", "no column is called `c`"),
        ("x-ray", "the name stands in double quotes: \"x-ray\""),
        ("case when a > 1 then 2", "has no `end`"),
        ("if(a, 1, 2)", "a condition is missing"),
        ("1 + 2", "a column is missing"),
        (
            "case when b > '5' then 1 end",
            "this text is a number: without quotes",
        ),
        ("round(a) > 'x'", "a number is compared, and `x` is a text"),
        ("(a > 1) + 1", "a condition can't be computed with"),
        ("replace($4, 'o', $4 || $4)", "more than 1048576 bytes"),
        (
            "regexp_replace($4, 'o', '$0$0$0$0')",
            "more than 1048576 bytes",
        ),
        ("$4 || $4 || $4", "more than 1048576 bytes"),
        ("length(concat($4, $4, $4))", "more than 1048576 bytes"),
    ] {
        let why = value_of(text, &row).unwrap_err();
        assert!(why.contains(want), "{text}: {why}");
    }
    let deep = format!("{}a{}", "abs(".repeat(200), ")".repeat(200));
    assert!(value_of(&deep, &row).unwrap_err().contains("too deeply"));
    let long = |operators: usize| "b".to_string() + &" + 1".repeat(operators);
    let why = value_of(&long(201), &row).unwrap_err();
    assert!(why.contains("more than 200 operators"));
    // All that may be nested is computed on the stack of a thread.
    let deep = format!("{}{}{}", "abs(".repeat(48), long(200), ")".repeat(48));
    assert_eq!(value_of(&deep, &row).as_deref(), Ok("200"));
}
