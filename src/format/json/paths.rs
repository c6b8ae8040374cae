//! The columns of JSON lines: paths of names with dots between, as a tree that is walked beside the text.

/// The columns that a query is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Paths {
    /// As they are asked for.
    pub(crate) names: Vec<Vec<u8>>,
    /// The first is where each line begins.
    pub(super) nodes: Vec<Node>,
}

/// A place that a path leads to or through.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// The column that it is.
    pub(super) column: Option<usize>,
    /// All columns that are here or after it.
    pub(super) below: Vec<usize>,
    /// Keys, and the nodes that they lead to. A key may have dots of its own, so one key may lead as far as several.
    pub(super) edges: Vec<(Box<[u8]>, usize)>,
}

impl Paths {
    /// Of different names. Without any there is one that no query asks for.
    pub(crate) fn new(mut names: Vec<Vec<u8>>) -> Paths {
        if names.is_empty() {
            names.push(Vec::new());
        }
        let mut nodes = vec![Node::default()];
        for (column, name) in names.iter().enumerate() {
            // The places before each part of the path, with where the part begins.
            let (mut before, mut start) = (vec![(0, 0)], 0);
            for part in name.split(|byte| *byte == b'.') {
                let end = start + part.len();
                let (last, from) = before[before.len() - 1];
                let known = nodes[last].child(&name[from..end]);
                let node = known.unwrap_or_else(|| {
                    nodes.push(Node::default());
                    nodes.len() - 1
                });
                for &(from, at) in &before {
                    let key = &name[at..end];
                    if nodes[from].child(key).is_none() {
                        nodes[from].edges.push((key.into(), node));
                    }
                }
                nodes[node].below.push(column);
                start = end + 1;
                before.push((node, start));
            }
            let (last, _) = before[before.len() - 1];
            nodes[last].column = Some(column);
        }
        Paths { names, nodes }
    }
}

impl Node {
    /// The node that a key leads to.
    #[inline(always)]
    pub(super) fn child(&self, key: &[u8]) -> Option<usize> {
        let found = self.edges.iter().find(|(known, _)| **known == *key);
        found.map(|(_, node)| *node)
    }
}
