//! The layers of ARCHITECTURE.md, held against what each file of a package imports.
//!
//! A file imports by its `use` items and by the paths in its code that begin with `crate`, `super`,
//! `self`, a child module or an imported name. A path leads to the file that defines what it names:
//! re-exports are followed. What is compiled for tests alone doesn't count, nor does the crate's
//! root, which stands above all layers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

#[test]
fn every_file_imports_from_its_own_layer_or_from_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for (package, block) in [(".", "```layers"), ("crates/read", "```layers crates/read")] {
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

/// What is wrong with `files` (path and text) by the layers in a block of `architecture`, a line each.
fn check(architecture: &str, block: &str, files: &[(String, String)]) -> Vec<String> {
    let layers = match Layers::read(architecture, block) {
        Ok(layers) => layers,
        Err(why) => return vec![format!("ARCHITECTURE.md: {why}")],
    };
    let tree = match Tree::read(files) {
        Ok(tree) => tree,
        Err(why) => return vec![why],
    };
    let mut wrong = Vec::new();
    for entry in layers.0.keys() {
        if !tree.modules.contains_key(entry) {
            wrong.push(format!(
                "ARCHITECTURE.md: there is no module `{entry}` under src/"
            ));
        }
    }
    for (module, path) in &tree.files {
        if !module.is_empty() && layers.of(module).is_none() {
            wrong.push(format!("{path}: `{module}` is in no layer"));
        }
    }
    let edges = tree.edges();
    let mut inside = Vec::new();
    for edge in &edges {
        let place = || {
            let imports = format!("imports {}", edge.imported);
            format!("{}:{}: {imports}", tree.files[&edge.from], edge.line)
        };
        if edge.to.is_empty() {
            wrong.push(format!("{} from the crate's root", place()));
            continue;
        }
        let (Some(from), Some(to)) = (layers.of(&edge.from), layers.of(&edge.to)) else {
            continue;
        };
        let both = format!(
            "`{}` is in layer {} ({}), `{}` in layer {} ({})",
            edge.from, from.0, from.1, edge.to, to.0, to.1
        );
        if to.0 > from.0 {
            wrong.push(format!("{} from a higher layer: {both}", place()));
        } else if to.0 == from.0 && to.1 != from.1 {
            wrong.push(format!("{} from a sibling: {both}", place()));
        } else if to.1 == from.1 {
            inside.push(edge);
        }
    }
    for cycle in cycles(&inside) {
        let layer = layers.of(&cycle[0].from).unwrap();
        let steps: Vec<_> = cycle
            .iter()
            .map(|edge| {
                let path = &tree.files[&edge.from];
                format!("{path}:{} imports {}", edge.line, edge.imported)
            })
            .collect();
        wrong.push(format!(
            "a cycle in layer {} ({}): {}",
            layer.0,
            layer.1,
            steps.join(", ")
        ));
    }
    wrong
}

/// The shortest cycle through each edge, those of the same files once.
fn cycles<'a>(edges: &[&'a Edge]) -> Vec<Vec<&'a Edge>> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for first in edges {
        // How each file was reached from the first edge's end.
        let mut reached: BTreeMap<&str, &Edge> = BTreeMap::from([(&*first.to, *first)]);
        let mut queue = VecDeque::from([&*first.to]);
        while let Some(file) = queue.pop_front() {
            for edge in edges.iter().filter(|edge| edge.from == file) {
                reached.entry(&edge.to).or_insert_with(|| {
                    queue.push_back(&edge.to);
                    edge
                });
            }
        }
        if !reached.contains_key(&*first.from) {
            continue;
        }
        let mut cycle = VecDeque::from([*first]);
        let mut file = &*first.from;
        while file != first.to {
            let edge = reached[file];
            cycle.insert(1, edge);
            file = &edge.from;
        }
        let files: BTreeSet<_> = cycle.iter().map(|edge| &*edge.from).collect();
        if seen.insert(files) {
            found.push(cycle.into());
        }
    }
    found
}

/// Module paths, with the number of their layer, 1 for the lowest.
struct Layers(BTreeMap<String, usize>);

impl Layers {
    /// The code block that opens with this line: a line a layer, blanks between its modules.
    fn read(markdown: &str, block: &str) -> Result<Layers, String> {
        let mut lines = markdown.lines().map(str::trim);
        if !lines.any(|line| line == block) {
            return Err(format!(
                "no code block opens with {block}; it lists the modules, the lowest layer first"
            ));
        }
        let block = lines.take_while(|line| *line != "```");
        let mut layers = BTreeMap::new();
        for (number, line) in block.filter(|line| !line.is_empty()).enumerate() {
            for module in line.split_whitespace() {
                if layers.insert(module.to_string(), number + 1).is_some() {
                    return Err(format!("`{module}` is in two layers"));
                }
            }
        }
        Ok(Layers(layers))
    }

    /// The layer of the longest entry that `module` is or lies in, and the entry.
    fn of(&self, module: &str) -> Option<(usize, &str)> {
        let mut prefix = module;
        loop {
            if let Some((entry, layer)) = self.0.get_key_value(prefix) {
                return Some((*layer, entry));
            }
            prefix = prefix.rsplit_once("::")?.0;
        }
    }
}

/// A file imports from another one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    /// Module paths of files.
    from: String,
    line: usize,
    to: String,
    imported: String,
}

/// One path of a `use` item.
struct Use {
    path: Vec<String>,
    /// What it is called here. `*` stands for all names.
    name: String,
    line: usize,
    public: bool,
}

/// A module, in a file of its own or inline.
#[derive(Default)]
struct Module {
    /// The module path of its file.
    file: String,
    /// Names of what it defines.
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths in its code.
    paths: Vec<(Vec<String>, usize)>,
    /// Names in its code that may be imported ones, without a path before them.
    words: BTreeSet<String>,
}

/// All modules by their paths; that of the crate's root is empty.
#[derive(Default)]
struct Tree {
    modules: BTreeMap<String, Module>,
    files: BTreeMap<String, String>,
}

fn join(module: &str, name: &str) -> String {
    match module {
        "" => name.to_string(),
        _ => format!("{module}::{name}"),
    }
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are `a::b`.
fn module_path(path: &str) -> String {
    let path = path.strip_prefix("src/").unwrap_or(path);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" {
        return String::new();
    }
    path.replace('/', "::")
}

impl Tree {
    fn read(files: &[(String, String)]) -> Result<Tree, String> {
        let mut tree = Tree::default();
        tree.modules.insert(String::new(), Module::default());
        for (path, text) in files {
            let module = module_path(path);
            if module.split("::").any(|name| name == "tests") {
                continue;
            }
            let tokens = text.parse().map_err(|error| format!("{path}: {error}"))?;
            tree.files.insert(module.clone(), path.clone());
            tree.modules.entry(module.clone()).or_default();
            tree.scan(tokens, &module, &module, true);
        }
        Ok(tree)
    }

    /// Notes what a part of `module`, which stands in `file`, defines, imports and names. `items`:
    /// the part isn't inside of an item.
    fn scan(&mut self, tokens: TokenStream, file: &str, module: &str, items: bool) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        self.modules.get_mut(module).unwrap().file = file.to_string();
        let mut at = 0;
        let mut public = false;
        while at < tokens.len() {
            let here = self.modules.get_mut(module).unwrap();
            let word = word(&tokens, at);
            match &*word {
                "#" => {
                    if let Some(end) = test_item(&tokens, at) {
                        at = end;
                        continue;
                    }
                }
                "pub" => {
                    public = true;
                    at += 1 + usize::from(restricts(tokens.get(at + 1)));
                    continue;
                }
                // Not the bounds of an `impl Trait + use<'a>`.
                "use" if self::word(&tokens, at + 1) != "<" => {
                    let end = (at..tokens.len()).find(|end| self::word(&tokens, *end) == ";");
                    let end = end.unwrap_or(tokens.len());
                    for (path, name, line) in use_tree(&tokens[at + 1..end], &[]) {
                        here.uses.push(Use {
                            path,
                            name,
                            line,
                            public: public && items,
                        });
                    }
                    at = end;
                }
                "mod" => {
                    let name = self::word(&tokens, at + 1);
                    if let Some(TokenTree::Group(body)) = tokens.get(at + 2) {
                        let inner = join(module, &name);
                        self.modules.entry(inner.clone()).or_default();
                        self.scan(body.stream(), file, &inner, true);
                        at += 2;
                    } else {
                        at += 1;
                    }
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static"
                    if items =>
                {
                    let name = self::word(&tokens, at + 1);
                    // `const fn`, `static mut`: the next word names it, or is `fn`.
                    if name == "mut" {
                        here.items.insert(self::word(&tokens, at + 2));
                    } else if name != "fn" && name != "unsafe" && name != "extern" {
                        here.items.insert(name);
                    }
                }
                "macro_rules" if items => {
                    here.items.insert(self::word(&tokens, at + 2));
                }
                _ => {
                    if let TokenTree::Ident(ident) = &tokens[at] {
                        let line = ident.span().start().line;
                        let alone = !continues(&tokens, at);
                        let mut path = vec![word.clone()];
                        while let Some(next) = continued(&tokens, at) {
                            path.push(next);
                            at += 3;
                        }
                        if alone {
                            // A variable or a field is no import, a function that is called may be.
                            let first = word.chars().next().unwrap();
                            let called = match tokens.get(at + 1) {
                                Some(TokenTree::Group(group)) => {
                                    group.delimiter() == Delimiter::Parenthesis
                                }
                                _ => self::word(&tokens, at + 1) == "!",
                            };
                            if first.is_uppercase() || called || path.len() > 1 {
                                here.words.insert(word);
                            }
                            if path.len() > 1 {
                                here.paths.push((path, line));
                            }
                        }
                    } else if let TokenTree::Group(group) = &tokens[at] {
                        self.scan(group.stream(), file, module, false);
                    }
                }
            }
            public = false;
            at += 1;
        }
    }

    /// Where `path` leads from the crate's root. `None`: to another crate, or to something local.
    fn absolute(&self, module: &str, path: &[String]) -> Option<Vec<String>> {
        let mut at: Vec<String> = module.split("::").map(str::to_string).collect();
        at.retain(|name| !name.is_empty());
        let mut rest = path;
        match &*path[0] {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" | "super" => {
                while let Some(name @ ("self" | "super")) = rest.first().map(|name| &**name) {
                    if name == "super" {
                        at.pop()?;
                    }
                    rest = &rest[1..];
                }
            }
            name if self.modules.contains_key(&join(module, name)) => {}
            name => {
                let mut uses = self.modules[module].uses.iter();
                let used = uses.find(|used| used.name == name && used.path[0] != name)?;
                at = self.absolute(module, &used.path)?;
                rest = &rest[1..];
            }
        }
        at.extend_from_slice(rest);
        Some(at)
    }

    /// The module that defines what `path`, from the crate's root, names.
    fn owner(&self, path: &[String], seen: &mut BTreeSet<Vec<String>>) -> String {
        let mut at = String::new();
        for (depth, name) in path.iter().enumerate() {
            let inner = join(&at, name);
            if self.modules.contains_key(&inner) {
                at = inner;
                continue;
            }
            let module = &self.modules[&at];
            if module.items.contains(name) {
                break;
            }
            for used in &module.uses {
                let Some(mut target) = self.absolute(&at, &used.path) else {
                    continue;
                };
                if used.name == "*" {
                    let all = self.owner(&target, seen);
                    if !self.names(&all, name) {
                        continue;
                    }
                    target.push(name.clone());
                } else if used.name != *name {
                    continue;
                }
                target.extend_from_slice(&path[depth + 1..]);
                if seen.insert(target.clone()) {
                    return self.owner(&target, seen);
                }
            }
            break;
        }
        at
    }

    fn names(&self, module: &str, name: &str) -> bool {
        let inner = join(module, name);
        let here = &self.modules[module];
        let mut used = here.uses.iter().map(|used| &used.name);
        here.items.contains(name) || self.modules.contains_key(&inner) || used.any(|n| n == name)
    }

    /// What every file imports from others, in the order of lines.
    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut add = |name: &str,
                       path: &[String],
                       line,
                       only_new: bool,
                       reexported: Option<&str>| {
            let module = &self.modules[name];
            let Some(target) = self.absolute(name, path) else {
                return;
            };
            let owner = self.owner(&target, &mut BTreeSet::new());
            // The root re-exports it from another crate.
            let is_foreign = |used: &Use| {
                Some(&used.name) == target.first() && self.absolute("", &used.path).is_none()
            };
            if owner.is_empty() && self.modules[""].uses.iter().any(is_foreign) {
                return;
            }
            let (from, to) = (&module.file, &self.modules[&owner].file);
            let child = to.starts_with(&join(from, ""));
            let idle = reexported.is_some_and(|name| !module.words.contains(name));
            let known = |edge: &Edge| edge.from == *from && edge.to == *to;
            if from == to || from.is_empty() || child && idle || only_new && edges.iter().any(known)
            {
                return;
            }
            edges.push(Edge {
                from: from.clone(),
                line,
                to: to.clone(),
                imported: path.join("::"),
            });
        };
        for (name, module) in &self.modules {
            for used in &module.uses {
                let reexported = used.public.then_some(&*used.name);
                add(name, &used.path, used.line, false, reexported);
            }
            let rooted = |path: &[String]| matches!(&*path[0], "crate" | "self" | "super");
            for (path, line) in module.paths.iter().filter(|(path, _)| rooted(path)) {
                add(name, path, *line, false, None);
            }
            // The path's first name was imported, and reported, by a `use` in most cases.
            for (path, line) in module.paths.iter().filter(|(path, _)| !rooted(path)) {
                add(name, path, *line, true, None);
            }
        }
        edges.sort();
        edges.dedup();
        edges
    }
}

/// The identifier or punctuation at `at`; of a group nothing.
fn word(tokens: &[TokenTree], at: usize) -> String {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => ident.to_string(),
        Some(TokenTree::Punct(punct)) => punct.to_string(),
        _ => String::new(),
    }
}

/// Whether `at` goes on with a path, or with a value by one dot (two are a range).
fn continues(tokens: &[TokenTree], at: usize) -> bool {
    let back = |n: usize| {
        at.checked_sub(n)
            .map_or(String::new(), |at| word(tokens, at))
    };
    match &*back(1) {
        ":" => back(2) == ":",
        "." => back(2) != ".",
        _ => false,
    }
}

/// The name that goes on with the path that ends at `at`.
fn continued(tokens: &[TokenTree], at: usize) -> Option<String> {
    if word(tokens, at + 1) != ":" || word(tokens, at + 2) != ":" {
        return None;
    }
    match tokens.get(at + 3)? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

/// Whether it is the `(crate)` or the `(in crate::a)` of a `pub`.
fn restricts(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else {
        return false;
    };
    let inner: Vec<_> = group.stream().into_iter().collect();
    let alone = inner.len() == 1 && matches!(&*word(&inner, 0), "crate" | "self" | "super");
    group.delimiter() == Delimiter::Parenthesis && (alone || word(&inner, 0) == "in")
}

/// The paths of a `use` item behind `prefix`, what each is called here, and its line.
fn use_tree(tokens: &[TokenTree], prefix: &[String]) -> Vec<(Vec<String>, String, usize)> {
    let mut found = Vec::new();
    let comma =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    for part in tokens.split(comma).filter(|part| !part.is_empty()) {
        let line = part[0].span().start().line;
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut nested = false;
        let mut at = 0;
        // A path that begins with `::` leads to another crate.
        if word(part, 0) == ":" {
            continue;
        }
        while at < part.len() {
            match (&part[at], &*word(part, at)) {
                (TokenTree::Group(group), _) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    found.extend(use_tree(&inner, &path));
                    nested = true;
                }
                (_, "as") => {
                    name = Some(word(part, at + 1));
                    at += 1;
                }
                (_, "*") => name = Some("*".into()),
                (TokenTree::Ident(_), "self") if !path.is_empty() => {}
                (TokenTree::Ident(_), segment) => path.push(segment.to_string()),
                _ => {}
            }
            at += 1;
        }
        if !nested {
            let name = name.unwrap_or_else(|| path.last().cloned().unwrap_or_default());
            found.push((path, name, line));
        }
    }
    found
}

/// Where the item ends that the attribute at `at` leaves to tests; `None`: it doesn't.
fn test_item(tokens: &[TokenTree], at: usize) -> Option<usize> {
    let attribute = |at: usize| match (&*word(tokens, at), tokens.get(at + 1)) {
        ("#", Some(TokenTree::Group(group))) => Some(group.stream()),
        _ => None,
    };
    let cfg: Vec<_> = attribute(at)?.into_iter().collect();
    let (word_of_cfg, Some(TokenTree::Group(condition))) = (word(&cfg, 0), cfg.get(1)) else {
        return None;
    };
    let condition: Vec<_> = condition.stream().into_iter().collect();
    let test = |tokens: &[TokenTree]| (0..tokens.len()).any(|at| word(tokens, at) == "test");
    let all = match (&*word(&condition, 0), condition.get(1)) {
        ("all", Some(TokenTree::Group(all))) => test(&all.stream().into_iter().collect::<Vec<_>>()),
        (only, _) => only == "test",
    };
    if word_of_cfg != "cfg" || !all {
        return None;
    }
    let mut at = at + 2;
    while attribute(at).is_some() {
        at += 2;
    }
    if word(tokens, at) == "pub" {
        at += 1 + usize::from(restricts(tokens.get(at + 1)));
    }
    // A field, a variant or an arm of a match is no item: no brace says where it ends.
    const ITEMS: [&str; 12] = [
        "mod", "use", "fn", "impl", "struct", "enum", "trait", "const", "static", "type", "unsafe",
        "async",
    ];
    if !ITEMS.contains(&&*word(tokens, at)) {
        return None;
    }
    let brace = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let end = (at..tokens.len()).find(|end| word(tokens, *end) == ";" || brace(&tokens[*end]))?;
    // The braces of a `use` stand before its end.
    let end = end + usize::from(word(tokens, end + 1) == ";");
    Some(end + 1)
}

mod tests {
    use super::*;

    const LAYERS: &str = "# Layers\n\n```layers\nlow\nleft right\nhigh::part\nhigh\n```\n";

    /// A tree that keeps to `LAYERS`.
    fn sound() -> Vec<(String, String)> {
        let files = [
            (
                "lib.rs",
                "pub mod high; mod left; mod low; mod right; pub use high::part::Part;",
            ),
            (
                "low.rs",
                "//! See [`crate::high`].\npub fn f() -> u8 { b'{' }",
            ),
            ("left.rs", "use crate::low;\npub fn g() { low::f() }"),
            (
                "right.rs",
                "pub struct R;\nimpl R { fn new() { crate::low::f() } }",
            ),
            (
                "high/mod.rs",
                "pub mod part;\npub use part::Part;\npub fn h() { crate::left::g() }",
            ),
            (
                "high/part.rs",
                "use crate::{left::g, right::{self, R as Right}};\npub struct Part;",
            ),
        ];
        let files = files
            .iter()
            .map(|(path, text)| (format!("src/{path}"), text.to_string()));
        files.collect()
    }

    /// What is wrong with the tree above after `text` was appended to `path`.
    fn with(path: &str, text: &str) -> Vec<String> {
        let mut files = sound();
        let path = format!("src/{path}");
        match files.iter_mut().find(|(other, _)| *other == path) {
            Some((_, whole)) => whole.push_str(&format!("\n{text}")),
            None => files.push((path, text.to_string())),
        }
        check(LAYERS, "```layers", &files)
    }

    /// The files that `text`, in `src/high/part.rs`, imports from.
    fn imports(text: &str) -> Vec<String> {
        let mut files = sound();
        files.last_mut().unwrap().1 = text.to_string();
        let edges = Tree::read(&files).unwrap().edges();
        let edges = edges.into_iter().filter(|edge| edge.from == "high::part");
        edges
            .map(|edge| format!("{} {}", edge.line, edge.to))
            .collect()
    }

    #[test]
    fn a_tree_that_keeps_to_its_layers_passes() {
        assert_eq!(check(LAYERS, "```layers", &sound()), [""; 0]);
    }

    #[test]
    fn a_line_that_imports_upward_fails() {
        let wrong = "src/low.rs:3: imports crate::left::g from a higher layer: \
                     `low` is in layer 1 (low), `left` in layer 2 (left)";
        assert_eq!(with("low.rs", "use crate::left::g;"), [wrong]);
        assert_eq!(with("low.rs", "fn x() { crate::left::g() }"), [wrong]);
        let wrong = "src/high/part.rs:3: imports super::h from a higher layer: \
                     `high::part` is in layer 3 (high::part), `high` in layer 4 (high)";
        assert_eq!(with("high/part.rs", "use super::h;"), [wrong]);
        // Through the root's re-export.
        let wrong = "src/left.rs:3: imports crate::Part from a higher layer: \
                     `left` is in layer 2 (left), `high::part` in layer 3 (high::part)";
        assert_eq!(with("left.rs", "use crate::Part;"), [wrong]);
    }

    #[test]
    fn a_sibling_is_not_imported() {
        let wrong = "src/left.rs:3: imports crate::right::R from a sibling: \
                     `left` is in layer 2 (left), `right` in layer 2 (right)";
        assert_eq!(with("left.rs", "use crate::right::R;"), [wrong]);
    }

    #[test]
    fn a_cycle_in_a_layer_fails() {
        let [a, b] = ["mod a; mod b;", "use super::b::B; struct A;"];
        let mut files = sound();
        files[1].1.push_str(a);
        files.push(("src/low/a.rs".into(), b.into()));
        files.push(("src/low/b.rs".into(), "struct B;".into()));
        assert_eq!(check(LAYERS, "```layers", &files), [""; 0]);
        files[7].1.push_str("\nuse super::a::A;");
        let wrong = "a cycle in layer 1 (low): \
                     src/low/a.rs:1 imports super::b::B, src/low/b.rs:2 imports super::a::A";
        assert_eq!(check(LAYERS, "```layers", &files), [wrong]);
    }

    #[test]
    fn a_child_may_import_from_a_parent_that_only_reexports_it() {
        let wrong = |parent: &str| {
            let mut files = sound();
            files[1].1.push_str(parent);
            files.push(("src/low/a.rs".into(), "use super::f; pub struct A;".into()));
            check(LAYERS, "```layers", &files)
        };
        assert_eq!(wrong("mod a; pub use a::A;"), [""; 0]);
        let cycle = |import: &str| {
            format!(
                "a cycle in layer 1 (low): src/low.rs:2 imports {import}, src/low/a.rs:1 imports super::f"
            )
        };
        assert_eq!(wrong("mod a; use a::A;"), [cycle("a::A")]);
        assert_eq!(wrong("mod a; pub use a::A; fn x(_: A) {}"), [cycle("a::A")]);
        assert_eq!(wrong("mod a; fn x() { a::y() }"), [cycle("a::y")]);
    }

    #[test]
    fn every_module_is_in_a_layer_and_every_layer_has_its_module() {
        let wrong = "src/new.rs: `new` is in no layer";
        assert_eq!(with("new.rs", ""), [wrong]);
        let mut files = sound();
        files.remove(3);
        let wrong = "ARCHITECTURE.md: there is no module `right` under src/";
        assert!(check(LAYERS, "```layers", &files).contains(&wrong.to_string()));
    }

    #[test]
    fn layers_that_are_missing_or_doubled_are_told() {
        let wrong = "ARCHITECTURE.md: no code block opens with ```layers; \
                     it lists the modules, the lowest layer first";
        assert_eq!(check("```\nlow\n```\n", "```layers", &sound()), [wrong]);
        let wrong = "ARCHITECTURE.md: `low` is in two layers";
        assert_eq!(
            check("```layers\nlow\nhigh low\n```\n", "```layers", &sound()),
            [wrong]
        );
    }

    #[test]
    fn an_item_of_the_root_is_above_all_layers() {
        let wrong = "src/low.rs:3: imports crate::Missing from the crate's root";
        assert_eq!(with("low.rs", "use crate::Missing;"), [wrong]);
    }

    #[test]
    fn use_trees_are_followed() {
        assert_eq!(
            imports("use crate::{low::f,\n left::{g as _},\n right::*};"),
            ["1 low", "2 left", "3 right"]
        );
        assert_eq!(imports("use super::super::low;"), ["1 low"]);
        assert_eq!(
            imports("pub(crate) use self::inner::X;\nmod inner { pub use crate::low::f as X; }"),
            ["1 low", "2 low"]
        );
        assert_eq!(
            imports("use std::{fs, io::{self, Read}}; use ::low::f;"),
            [""; 0]
        );
        // The re-export leads back to this file.
        assert_eq!(imports("use super::Part; pub struct Part;"), [""; 0]);
    }

    #[test]
    fn paths_in_code_are_followed() {
        assert_eq!(
            imports("fn x() {\n crate::low::f() + match 1 { _ => super::h() } }"),
            ["2 high", "2 low"]
        );
        assert_eq!(
            imports("mod inner { fn x() { super::super::super::low::f() } }"),
            ["1 low"]
        );
        // By a module that was imported, beyond what the `use` names.
        assert_eq!(
            imports("use crate::high;\n\nfn x() { high::part::f(); crate::high::h() }"),
            ["1 high", "3 high"]
        );
        assert_eq!(
            imports("fn x() { for _ in 0..crate::low::N { self.high::<u8>() } }"),
            ["1 low"]
        );
        assert_eq!(
            imports("macro_rules! m { () => { $crate::low::f() } }"),
            ["1 low"]
        );
    }

    #[test]
    fn comments_strings_visibility_and_tests_are_left_out() {
        let text = r###"
            //! crate::low::f
            /* crate::low::f /* crate::low::f */ */
            /// [`crate::low::f`]
            pub(in crate::high) fn x() -> &'static str { "crate::low::f" }
            const Y: &str = r#"use crate::low; ""#;
            const Z: (char, u8) = ('"', b'"');
            #[cfg(test)]
            mod tests { use crate::low::f; }
            #[cfg(all(test, target_arch = "x86_64"))]
            use crate::low::{f as g};
            #[cfg(test)]
            pub(crate) fn only<A, B>() { crate::low::f() }
            #[cfg(not(test))]
            fn last() { crate::right::r() }
        "###;
        assert_eq!(imports(text), ["15 right"]);
        let wrong = with("low/tests.rs", "use crate::high;");
        assert_eq!(wrong, [""; 0]);
    }
}
