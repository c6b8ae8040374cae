//! JSON lines: an object a line, whose values have names.
//!
//! A line is read once, from its start to its end, and no tree is made of it: each key is looked up beside the
//! paths that the query asks for, and values that nobody asks for are only checked. The grammar is that of RFC 8259; of
//! bytes in strings it isn't checked whether they are UTF-8. Of keys that come twice the last one counts.

mod paths;
mod token;

pub(crate) use paths::Paths;

use crate::format::escape::Escape;
use crate::format::field::{Field, Record, Unreadable};
use token::{Bad, after_blanks, bad, byte, scalar, string};

/// How deep objects and arrays may stand in each other: a bit for each.
const DEEPEST: u32 = u128::BITS;

/// What is wrong with a line that an object doesn't end in.
pub(crate) const CUT: &str = "the line ends before its object does";

impl Paths {
    /// Finds the columns in the line that begins at `at`; one of nothing but blanks has none.
    ///
    /// # Errors
    /// It isn't an object.
    pub(crate) fn split(
        &self,
        bytes: &[u8],
        at: usize,
        fields: &mut Vec<Field>,
    ) -> Result<Record, Unreadable> {
        fields.clear();
        let start = after_blanks(bytes, at);
        let done = match byte(bytes, start) {
            b'\n' => Ok(start),
            b'{' => {
                fields.resize(self.names.len(), Field::plain(start, start));
                let end = self.object(bytes, start + 1, 0, fields, 1);
                end.and_then(|end| match after_blanks(bytes, end) {
                    last if byte(bytes, last) == b'\n' => Ok(last),
                    more => bad(more, "something follows the object"),
                })
            }
            _ => bad(start, "the line isn't a JSON object"),
        };
        match done {
            Ok(end) => Ok(Record {
                end: end - usize::from(bytes[at..end].ends_with(b"\r")),
                next: bytes.len().min(end + 1),
            }),
            Err(Bad { at: wrong, cause }) => {
                let Record { end, next } = Record::line(bytes, at);
                let (range, cause) = match wrong < end {
                    true => (wrong..end, cause),
                    false => (start.min(end)..end, CUT),
                };
                Err(Unreadable::new(range, cause, next))
            }
        }
    }

    /// Finds columns in the object whose first key stands at `at`; returns where it ends.
    fn object(
        &self,
        bytes: &[u8],
        at: usize,
        node: usize,
        fields: &mut [Field],
        depth: u32,
    ) -> Result<usize, Bad> {
        let node = &self.nodes[node];
        let mut at = after_blanks(bytes, at);
        if byte(bytes, at) == b'}' {
            return Ok(at + 1);
        }
        loop {
            let (key, value) = key(bytes, at)?;
            let child = match key.escape {
                None => node.child(&bytes[key.start..key.end]),
                Some(_) => node.child(key.value(bytes, &mut Vec::new())),
            };
            let end = match child {
                Some(child) => self.value(bytes, value, child, fields, depth)?,
                None => skip(bytes, value, depth)?,
            };
            at = after_blanks(bytes, end);
            match byte(bytes, at) {
                b',' => at = after_blanks(bytes, at + 1),
                b'}' => return Ok(at + 1),
                _ => return bad(at, "a comma or `}` is expected"),
            }
        }
    }

    /// Notes the value at `at`, of a key that is asked for; returns where it ends.
    fn value(
        &self,
        bytes: &[u8],
        at: usize,
        node: usize,
        fields: &mut [Field],
        depth: u32,
    ) -> Result<usize, Bad> {
        let place = &self.nodes[node];
        for &column in &place.below {
            fields[column] = Field::plain(at, at);
        }
        let (field, end) = match byte(bytes, at) {
            b'"' => {
                let field = text(bytes, at)?;
                (field, field.end + 1)
            }
            b'{' if !place.edges.is_empty() && depth < DEEPEST => {
                let end = self.object(bytes, at + 1, node, fields, depth + 1)?;
                (Field::plain(at, end), end)
            }
            b'n' => (Field::plain(at, at), scalar(bytes, at)?),
            _ => {
                let end = skip(bytes, at, depth)?;
                (Field::plain(at, end), end)
            }
        };
        if let Some(column) = place.column {
            fields[column] = field;
        }
        Ok(end)
    }
}

/// The paths of all values of the first object among lines.
pub(crate) fn keys(bytes: &[u8]) -> Vec<Vec<u8>> {
    let start = bytes.iter().position(|byte| *byte == b'{');
    let mut paths = Vec::new();
    if let Some(start) = start {
        // Of one that can't be read those before that place.
        let _ = add_keys(bytes, start + 1, &[], &mut paths);
    }
    paths
}

/// Whether the object at `at` has no key.
fn is_empty(bytes: &[u8], at: usize) -> bool {
    byte(bytes, after_blanks(bytes, at + 1)) == b'}'
}

/// Adds the paths of an object whose first key stands at `at`; returns where it ends.
fn add_keys(
    bytes: &[u8],
    at: usize,
    before: &[u8],
    paths: &mut Vec<Vec<u8>>,
) -> Result<usize, Bad> {
    let mut at = after_blanks(bytes, at);
    loop {
        let (key, value) = key(bytes, at)?;
        let path = [before, key.value(bytes, &mut Vec::new())].concat();
        let end = match byte(bytes, value) {
            b'{' if before.len() < 1000 && !is_empty(bytes, value) => {
                add_keys(bytes, value + 1, &[&path, &b"."[..]].concat(), paths)?
            }
            _ => {
                let end = skip(bytes, value, 1)?;
                paths.push(path);
                end
            }
        };
        at = after_blanks(bytes, end);
        match byte(bytes, at) {
            b',' => at = after_blanks(bytes, at + 1),
            _ => return Ok(at + 1),
        }
    }
}

/// The key at `at`, and where its value begins.
#[inline(always)]
fn key(bytes: &[u8], at: usize) -> Result<(Field, usize), Bad> {
    if byte(bytes, at) != b'"' {
        return bad(at, "a key in double quotes is expected");
    }
    let key = text(bytes, at)?;
    let colon = after_blanks(bytes, key.end + 1);
    if byte(bytes, colon) != b':' {
        return bad(colon, "a colon is expected");
    }
    Ok((key, after_blanks(bytes, colon + 1)))
}

/// The text that stands after a quote at `at`.
#[inline(always)]
fn text(bytes: &[u8], at: usize) -> Result<Field, Bad> {
    let (end, has_escapes) = string(bytes, at + 1)?;
    Ok(Field {
        start: at + 1,
        end,
        escape: has_escapes.then_some(Escape::Json),
    })
}

/// After the value at `at`, `depth` objects deep.
#[inline(always)]
fn skip(bytes: &[u8], at: usize, depth: u32) -> Result<usize, Bad> {
    match byte(bytes, at) {
        b'{' | b'[' => container(bytes, at, depth),
        _ => scalar(bytes, at),
    }
}

/// After the object or array at `at`.
fn container(bytes: &[u8], mut at: usize, depth: u32) -> Result<usize, Bad> {
    // What isn't closed yet: a bit for each, set for objects, the last one in the lowest place.
    let (mut open, mut count) = (0_u128, 0);
    loop {
        let opens = byte(bytes, at);
        if matches!(opens, b'{' | b'[') {
            if depth + count >= DEEPEST {
                return bad(
                    at,
                    "objects and arrays stand more than 128 deep in each other",
                );
            }
            (open, count) = (open << 1 | u128::from(opens == b'{'), count + 1);
            at = after_blanks(bytes, at + 1);
            match (byte(bytes, at), opens) {
                (b'}', b'{') | (b']', b'[') => {}
                (_, b'{') => {
                    at = key(bytes, at)?.1;
                    continue;
                }
                _ => continue,
            }
        } else {
            at = after_blanks(bytes, scalar(bytes, at)?);
        }
        // After a value, or at the end of what has none.
        loop {
            let is_object = open & 1 == 1;
            match (byte(bytes, at), is_object) {
                (b'}', true) | (b']', false) => {
                    (open, count, at) = (open >> 1, count - 1, at + 1);
                    if count == 0 {
                        return Ok(at);
                    }
                    at = after_blanks(bytes, at);
                }
                (b',', true) => {
                    at = key(bytes, after_blanks(bytes, at + 1))?.1;
                    break;
                }
                (b',', false) => {
                    at = after_blanks(bytes, at + 1);
                    break;
                }
                (_, true) => return bad(at, "a comma or `}` is expected"),
                (_, false) => return bad(at, "a comma or `]` is expected"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The values of some paths in a line, or where it is wrong.
    fn values(paths: &[&str], line: &[u8]) -> Result<Vec<Vec<u8>>, usize> {
        let paths = Paths::new(paths.iter().map(|path| path.as_bytes().to_vec()).collect());
        let mut fields = Vec::new();
        match paths.split(line, 0, &mut fields) {
            Ok(_) => {
                let value = |field: &Field| field.value(line, &mut Vec::new()).to_vec();
                Ok(fields.iter().map(value).collect())
            }
            Err(bad) => Err(bad.bytes.start),
        }
    }

    #[track_caller]
    fn check(paths: &[&str], line: &str, want: &[&str]) {
        let got = values(paths, line.as_bytes()).unwrap();
        let got: Vec<_> = got
            .iter()
            .map(|value| String::from_utf8_lossy(value))
            .collect();
        assert_eq!(got, want, "{line}");
    }

    #[test]
    fn values_of_paths() {
        let paths = ["a", "a.b", "a.b.c", "x"];
        check(
            &paths,
            r#"{"a":{"b":{"c":-1.5e+3}}}"#,
            &[r#"{"b":{"c":-1.5e+3}}"#, r#"{"c":-1.5e+3}"#, "-1.5e+3", ""],
        );
        check(
            &paths,
            " {\t\"a.b\" : \"q\\u0041\" , \"x\" : true }\r\n",
            &["", "qA", "", "true"],
        );
        check(
            &paths,
            r#"{"a":{"b.c":[1, 2]},"x":null}"#,
            &[r#"{"b.c":[1, 2]}"#, "", "[1, 2]", ""],
        );
        check(&paths, r#"{"a.b.c":"","\u0078":"y"}"#, &["", "", "", "y"]);
        // The last one counts, and what lay in it.
        check(
            &paths,
            r#"{"x":1,"a":{"b":2},"a":{},"x":3}"#,
            &["{}", "", "", "3"],
        );
        check(
            &paths,
            r#"{"a":{"b":{"c":1}},"a.b":null,"a":7}"#,
            &["7", "", "", ""],
        );
        check(&["", "."], r#"{"":1,".":2}"#, &["1", "2"]);
        check(&["", "."], r#"{"":{"":3}}"#, &[r#"{"":3}"#, "3"]);
        check(&["k"], "{}", &[""]);
        assert_eq!(values(&["k"], b" \t\r\n"), Ok(vec![]));
    }

    #[test]
    fn depth_has_a_limit() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for (deep, is_good) in [(126, true), (127, true), (128, false), (10_000, false)] {
                let nested =
                    |inner: &str| format!("{}{inner}{}", open.repeat(deep), close.repeat(deep));
                for key in ["a", "b"] {
                    let line = format!("{{\"{key}\":{}}}", nested("1"));
                    for path in ["a", "a.a", "b.a.a", "x"] {
                        assert_eq!(
                            values(&[path], line.as_bytes()).is_ok(),
                            is_good,
                            "{path} {deep}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn keys_of_the_first_object() {
        let names = |text: &str| {
            let keys = keys(text.as_bytes());
            keys.iter()
                .map(|key| String::from_utf8_lossy(key).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("\n{\"a\":{\"b\":1,\"c\":[{\"d\":1}]},\"e\":{},\"f\":2}\n{\"g\":1}"),
            ["a.b", "a.c", "e", "f"]
        );
        assert_eq!(names("{\"a\":1,\"b\":"), ["a"]);
        assert!(names("a,b\n").is_empty());
        assert!(names(&"{\"a\":".repeat(100_000)).is_empty());
    }

    #[derive(Debug, Clone)]
    enum Json {
        Text(String),
        Other(String),
        List(Vec<Json>),
        Object(Vec<(String, Json)>),
    }

    impl Json {
        fn text(&self, blank: &str) -> String {
            let joined = |parts: Vec<String>| parts.join(&format!(",{blank}"));
            match self {
                Json::Text(text) => serde(text),
                Json::Other(text) => text.clone(),
                Json::List(values) => {
                    let values = values.iter().map(|value| value.text(blank)).collect();
                    format!("[{blank}{}{blank}]", joined(values))
                }
                Json::Object(members) => {
                    let member = |(key, value): &(String, Json)| {
                        format!("{}{blank}:{blank}{}{blank}", serde(key), value.text(blank))
                    };
                    format!(
                        "{{{blank}{}}}",
                        joined(members.iter().map(member).collect())
                    )
                }
            }
        }

        /// What a path means: of the members that lead to it or on the way the last one counts.
        fn find(&self, path: &str, blank: &str) -> Option<String> {
            let Json::Object(members) = self else {
                return None;
            };
            let leads = |key: &str| path.strip_prefix(key)?.strip_prefix('.');
            let (key, value) = members
                .iter()
                .rfind(|(key, _)| key == path || leads(key).is_some())?;
            match (value, leads(key)) {
                (value, Some(rest)) => value.find(rest, blank),
                (Json::Text(text), None) => Some(text.clone()),
                (Json::Other(text), None) if text == "null" => None,
                (value, None) => Some(value.text(blank)),
            }
        }
    }

    fn serde(text: &str) -> String {
        format!(
            "\"{}\"",
            text.replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n")
                .replace('é', "\\u00e9")
        )
    }

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            "[a\"\\\\\n é]{0,20}".prop_map(Json::Text),
            "-?(0|[1-9][0-9]{0,19})(\\.[0-9]{1,19})?([eE][+-]?[0-9]{1,2})?".prop_map(Json::Other),
            prop::sample::select(&["true", "false", "null"][..])
                .prop_map(|text| Json::Other(text.into())),
        ];
        let object = |inner| prop::collection::vec((key(), inner), 0..5).prop_map(Json::Object);
        let nested = leaf.prop_recursive(4, 30, 5, move |inner| {
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
                3 => object(inner),
            ]
        });
        object(nested.boxed())
    }

    fn key() -> impl Strategy<Value = String> {
        prop::sample::select(
            &[
                "a",
                "b",
                "a.b",
                "b.a",
                "a.b.c",
                "c",
                "",
                "é\"",
                "a long key of more than sixteen bytes",
            ][..],
        )
        .prop_map(String::from)
    }

    proptest! {
        #[test]
        fn values_are_found(object in json(), blank in prop::sample::select(&["", " ", "\t ", "\r"][..])) {
            let paths = ["a", "a.b", "a.b.c", "b.a", "c", "b", "a.a.a", "é\""];
            let line = object.text(blank);
            let got = values(&paths, line.as_bytes()).unwrap();
            let want: Vec<_> = paths.iter().map(|path| object.find(path, blank).unwrap_or_default()).collect();
            let got: Vec<_> = got.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
            prop_assert_eq!(got, want, "{}", line);
        }

        /// What a library of good name takes for an object is taken, and nothing else.
        #[cfg(feature = "cli")]
        #[test]
        fn lines_are_valid_where_others_say_so(
            object in json(),
            blank in prop::sample::select(&["", " "][..]),
            changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"{}[]:,\"\\u0e-.1 tn\t\x01x".to_vec()), 0..3), 0..4),
        ) {
            let mut line = object.text(blank).into_bytes();
            for (at, byte, way) in changes {
                let at = at.index(line.len());
                match way {
                    0 => line[at] = byte,
                    1 => line.insert(at, byte),
                    _ => drop(line.remove(at)),
                }
                if line.is_empty() {
                    line.push(b'{');
                }
            }
            let is_object = line.trim_ascii_start().starts_with(b"{");
            let want = is_object && serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_ok();
            let got = values(&["a", "b.a", "a.b.c"], &line);
            if !line.trim_ascii().is_empty() {
                prop_assert_eq!(got.is_ok(), want, "{:?}", String::from_utf8_lossy(&line));
            }
        }
    }
}
