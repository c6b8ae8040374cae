//! The layers of ARCHITECTURE.md, held against what each file of a package imports.
//!
//! A file imports by paths that begin with `crate`, `super` or `self`, in `use` items and in code. What is compiled for
//! tests alone doesn't count, nor does the crate's root, which stands above all layers. What lies in one entry of the
//! list may import each other.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

#[test]
fn every_file_imports_from_its_own_layer_or_from_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for (package, block) in [
        (".", "```layers"),
        ("crates/read", "```layers crates/read"),
        ("crates/bench", "```layers crates/bench"),
    ] {
        let mut files = Vec::new();
        find(&root.join(package), "src", &mut files);
        files.retain(|(path, _)| path != "src/main.rs");
        let wrong = check(&text, block, &files);
        assert!(wrong.is_empty(), "\n{package}: {}", wrong.join("\n"));
    }
}

/// All Rust files of `dir`, a path below `root`, with their texts.
fn find(root: &Path, dir: &str, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(root.join(dir)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{dir}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            find(root, &path, files);
        } else if path.ends_with(".rs") {
            files.push((path, fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

/// `src/a/b.rs` is `["a", "b"]`.
fn module(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let names = path.split('/').filter(|name| *name != "lib");
    names.map(str::to_string).collect()
}

/// What is wrong with `files` (path and text) by the layers in a block of `architecture`, a line each.
fn check(architecture: &str, block: &str, files: &[(String, String)]) -> Vec<String> {
    let layers = match layers(architecture, block) {
        Ok(layers) => layers,
        Err(why) => return vec![format!("ARCHITECTURE.md: {why}")],
    };
    // The longest entry that a module is or lies in, and its layer.
    let layer = |module: &[String]| {
        let prefixes = (1..=module.len()).rev().map(|len| module[..len].join("::"));
        let found = { prefixes }.find_map(|prefix| layers.get_key_value(&prefix));
        found.map(|(entry, layer)| (*layer, entry.clone()))
    };
    let (mut wrong, mut entries) = (Vec::new(), layers.clone());
    // What the root re-exports, by name.
    let mut exports = BTreeMap::new();
    for (_, text) in files.iter().filter(|(path, _)| path == "src/lib.rs") {
        let tokens: Vec<TokenTree> = text.parse::<TokenStream>().unwrap().into_iter().collect();
        let mut found = Vec::new();
        for (at, _) in tokens.iter().enumerate() {
            if ident(tokens.get(at)).as_deref() == Some("use") {
                tree(&tokens[at + 1..], &[], &mut found);
            }
        }
        let named = |import: Import| (import.path.last().cloned().unwrap_or_default(), import.path);
        exports.extend(found.into_iter().map(named));
    }
    for (path, text) in files {
        let own = module(path);
        entries.remove(&own.join("::"));
        if own.is_empty() || own.iter().any(|name| name == "tests") {
            continue;
        }
        let Some((from, entry)) = layer(&own) else {
            wrong.push(format!("{path}: `{}` is in no layer", own.join("::")));
            continue;
        };
        for Import { path: to, line } in imports(path, text) {
            // A name that the root re-exports, from here or from another crate.
            let leads = exports.get(&to[0]).filter(|_| to.len() == 1);
            let leads = leads.unwrap_or(&to);
            if let Some((to, other)) = layer(leads)
                && (to > from || to == from && other != entry)
            {
                let imported = leads.join("::");
                wrong.push(format!(
                    "{path}:{line}: `{entry}` is in layer {from}, and imports {imported} from layer {to}"
                ));
            }
        }
    }
    let missing = { entries.keys() }
        .map(|entry| format!("ARCHITECTURE.md: there is no module `{entry}` under src/"));
    wrong.extend(missing);
    wrong
}

/// Module paths, with the number of their layer, 1 for the lowest: the code block that opens with this line has a line a
/// layer, blanks between its modules.
fn layers(markdown: &str, block: &str) -> Result<BTreeMap<String, usize>, String> {
    let mut lines = markdown.lines().map(str::trim);
    if !lines.any(|line| line == block) {
        return Err(format!("no code block opens with {block}"));
    }
    let mut layers = BTreeMap::new();
    for (number, line) in lines.take_while(|line| *line != "```").enumerate() {
        for module in line.split_whitespace() {
            if layers.insert(module.to_string(), number + 1).is_some() {
                return Err(format!("`{module}` is in two layers"));
            }
        }
    }
    Ok(layers)
}

/// A path from the crate's root.
struct Import {
    path: Vec<String>,
    line: usize,
}

/// What a file imports.
fn imports(path: &str, text: &str) -> Vec<Import> {
    let tokens: TokenStream = text
        .parse()
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut found = Vec::new();
    scan(tokens, &module(path), &mut found);
    found.retain(|import| !import.path.is_empty());
    found
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn scan(tokens: TokenStream, module: &[String], found: &mut Vec<Import>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(end) = test_item(&tokens[at..]) {
            at += end;
            continue;
        }
        let name = ident(tokens.get(at));
        // By `$crate` a macro names what its callers need.
        let is_of_macro = at > 0 && is_punct(tokens.get(at - 1), '$');
        let is_path =
            !is_of_macro && is_punct(tokens.get(at + 1), ':') && is_punct(tokens.get(at + 2), ':');
        match (name.as_deref(), &tokens[at]) {
            (Some("crate" | "super" | "self"), _) if is_path => {
                at += tree(&tokens[at..], module, found);
            }
            // An inline module is one level more.
            (Some("mod"), _) if matches!(tokens.get(at + 2), Some(TokenTree::Group(_))) => {
                let Some(TokenTree::Group(body)) = tokens.get(at + 2) else {
                    unreachable!()
                };
                let inner = [module, &[ident(tokens.get(at + 1)).unwrap()]].concat();
                scan(body.stream(), &inner, found);
                at += 3;
            }
            (_, TokenTree::Group(group)) => {
                scan(group.stream(), module, found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Notes the paths of a tree such as `crate::{a, b::{self, c}}`, which begins in `module`; returns its tokens.
fn tree(tokens: &[TokenTree], module: &[String], found: &mut Vec<Import>) -> usize {
    let (mut path, mut at) = (module.to_vec(), 0);
    let line = tokens[0].span().start().line;
    loop {
        match (ident(tokens.get(at)).as_deref(), tokens.get(at)) {
            (Some("crate"), _) => path.clear(),
            (Some("super"), _) => drop(path.pop()),
            (Some("self"), _) => {}
            (Some(name), _) => path.push(name.into()),
            (None, Some(TokenTree::Group(group))) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                let parts = inner.split(|token| is_punct(Some(token), ','));
                for part in parts.filter(|part| !part.is_empty()) {
                    tree(part, &path, found);
                }
                return at + 1;
            }
            _ => {}
        }
        at += 1;
        if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
            break;
        }
        at += 2;
    }
    found.push(Import { path, line });
    at
}

/// Where the item ends that an attribute at the start leaves to tests; `None`: it doesn't.
fn test_item(tokens: &[TokenTree]) -> Option<usize> {
    let Some(TokenTree::Group(attribute)) = tokens.get(1).filter(|_| is_punct(tokens.first(), '#'))
    else {
        return None;
    };
    let text = attribute.stream().to_string();
    let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let is_test = words[0] == "cfg" && words.contains(&"test") && !words.contains(&"not");
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == proc_macro2::Delimiter::Brace,
        token => is_punct(Some(token), ';') || is_punct(Some(token), ','),
    };
    let end = tokens.iter().position(is_end)?;
    // The braces of a `use` stand before its end.
    let end = end + usize::from(is_punct(tokens.get(end + 1), ';'));
    is_test.then_some(end + 1)
}

mod tests {
    use super::*;

    /// What is wrong where `src/high/part.rs` is this text, by lines and what is imported.
    fn wrong(text: &str) -> Vec<String> {
        let files = [
            (
                "src/lib.rs",
                "pub mod high; pub use high::Part; pub use other::Foreign;",
            ),
            ("src/low.rs", ""),
            ("src/left.rs", ""),
            ("src/middle.rs", text),
            ("src/high.rs", ""),
            (
                "src/high/part.rs",
                "use crate::{left, low::f}; use super::Other;",
            ),
        ];
        let files = files.map(|(path, text)| (path.to_string(), text.to_string()));
        let wrong = check(
            "```layers\nlow\nleft middle\nhigh\n```",
            "```layers",
            &files,
        );
        let short = |line: &String| {
            let (place, rest) = line.split_once(": ").unwrap();
            let imported = rest.split("imports ").nth(1).unwrap_or(rest);
            format!("{} {imported}", place.rsplit(':').next().unwrap())
        };
        wrong.iter().map(short).collect()
    }

    #[test]
    fn imports_lead_down() {
        assert_eq!(
            wrong("use crate::low::{self, f}; use crate::Foreign;"),
            [""; 0]
        );
        let up = ["1 high::f from layer 3"];
        assert_eq!(wrong("use crate::{low, high::f};"), up);
        assert_eq!(wrong("fn x() { if true { super::high::f() } }"), up);
        assert_eq!(wrong("mod inner { use super::super::high::f; }"), up);
        assert_eq!(wrong("\nuse crate::left;"), ["2 left from layer 2"]);
        assert_eq!(wrong("use crate::Part;"), ["1 high::Part from layer 3"]);
    }

    #[test]
    fn comments_strings_and_tests_are_left_out() {
        let text = r###"
            //! crate::high::f
            /// [`crate::high::f`]
            pub(in crate::low) fn x() -> &'static str { "crate::high::f" }
            const Y: &str = r#"use crate::high; ""#;
            #[cfg(test)]
            mod tests { use crate::high::f; }
            #[cfg(all(test, target_arch = "x86_64"))]
            use crate::high::{f as g};
            #[cfg(not(test))]
            fn last() { crate::high::r() }
        "###;
        assert_eq!(wrong(text), ["11 high::r from layer 3"]);
    }

    #[test]
    fn the_list_is_that_of_the_files() {
        let files = [("src/low.rs".to_string(), String::new())];
        let check = |list: &str| check(list, "```layers", &files);
        assert_eq!(check("```layers\nlow\n```"), [""; 0]);
        let missing = "ARCHITECTURE.md: there is no module `high` under src/";
        assert_eq!(check("```layers\nlow\nhigh\n```"), [missing]);
        assert_eq!(
            check("```layers\n```"),
            ["src/low.rs: `low` is in no layer"]
        );
        let twice = "ARCHITECTURE.md: `low` is in two layers";
        assert_eq!(check("```layers\nlow low\n```"), [twice]);
        assert_eq!(
            check(""),
            ["ARCHITECTURE.md: no code block opens with ```layers"]
        );
    }
}
