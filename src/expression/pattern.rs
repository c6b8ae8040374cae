//! Regular expressions over bytes.

use std::fmt;
use std::ops::Range;

use regex_automata::Input;
pub(crate) use regex_automata::meta::Cache as SearchCache;
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::syntax;

/// The most bytes of a pattern that is compiled, and of what a search keeps.
const PROGRAM_MAX: usize = 10 << 20;
const CACHE_MAX: usize = 2 << 20;

#[derive(Clone)]
pub(crate) struct Pattern {
    text: String,
    regex: Regex,
}

/// Formulas are compared by this: the text is the whole pattern.
impl fmt::Debug for Pattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Pattern({:?})", self.text)
    }
}

impl Pattern {
    /// # Errors
    /// It is none: why.
    pub(super) fn new(text: &str) -> Result<Pattern, String> {
        let limits = Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(PROGRAM_MAX))
            .hybrid_cache_capacity(CACHE_MAX);
        let built = Regex::builder()
            .configure(limits)
            .syntax(syntax::Config::new().utf8(false))
            .build(text);
        let regex = built.map_err(|error| why(&error))?;
        let text = text.into();
        Ok(Pattern { text, regex })
    }

    /// The pattern of `like`: `%` is any text, `_` a letter.
    ///
    /// # Errors
    /// It is too large.
    pub(super) fn like(text: &str) -> Result<Pattern, String> {
        let mut pattern = String::from(r"\A");
        for letter in text.chars() {
            match letter {
                '%' => pattern += "(?s-u:.)*",
                '_' => pattern += "(?s:.)",
                letter if letter.is_alphanumeric() || letter == ' ' => pattern.push(letter),
                letter => pattern += &format!(r"\x{{{:x}}}", u32::from(letter)),
            }
        }
        Pattern::new(&(pattern + r"\z"))
    }

    /// Where a group of the first match stands; group 0 is all of it.
    pub(super) fn group(&self, text: &[u8], group: usize) -> Option<Range<usize>> {
        if group == 0 {
            return self.regex.find(text).map(|found| found.range());
        }
        let mut captures = self.regex.create_captures();
        self.regex.captures(text, &mut captures);
        captures.get_group(group).map(|found| found.range())
    }

    /// A text in which all matches are replaced; `$1` in `to` stands for a group.
    ///
    /// # Errors
    /// That of `check`, which is given the bytes so far.
    pub(super) fn replaced<E>(
        &self,
        text: &[u8],
        to: &[u8],
        check: impl Fn(usize) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let (mut all, mut last) = (Vec::new(), 0);
        for captures in self.regex.captures_iter(text) {
            let Some(whole) = captures.get_match() else {
                continue;
            };
            all.extend_from_slice(&text[last..whole.start()]);
            captures.interpolate_bytes_into(text, to, &mut all);
            last = whole.end();
            check(all.len())?;
        }
        all.extend_from_slice(&text[last..]);
        Ok(all)
    }

    /// Whether a part of a text matches.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    pub(crate) fn cache(&self) -> SearchCache {
        self.regex.create_cache()
    }

    /// The same as [`Pattern::is_match`], by a cache of its own.
    pub(crate) fn is_match_by(&self, cache: &mut SearchCache, text: &[u8]) -> bool {
        let input = Input::new(text).earliest(true);
        self.regex.search_half_with(cache, &input).is_some()
    }
}

fn why(error: &BuildError) -> String {
    if let Some(limit) = error.size_limit() {
        return format!("compiled it takes more than {limit} bytes");
    }
    let Some(error) = error.syntax_error() else {
        return error.to_string();
    };
    // The library draws the pattern on lines of its own; the last one says what is wrong.
    let error = error.to_string();
    let why = error.lines().last().unwrap_or_default();
    why.strip_prefix("error: ").unwrap_or(why).into()
}
