//! NUMA nodes.

use crate::linux::proc;

/// The processors of each NUMA node that has some; empty where there is but one node.
pub(crate) fn nodes() -> Vec<Vec<usize>> {
    let node = |node: usize| {
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        proc::text(path).map(|list| numbers(&list))
    };
    let online = proc::text("/sys/devices/system/node/online").unwrap_or_default();
    let nodes: Vec<_> = numbers(&online)
        .into_iter()
        .filter_map(|n| node(n).ok().filter(|cpus| !cpus.is_empty()))
        .collect();
    if nodes.len() > 1 { nodes } else { Vec::new() }
}

/// `0-2,5` as numbers; what isn't one is left out.
fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(numbers("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(numbers("7"), [7]);
        assert_eq!(numbers("\n"), [0; 0]);
    }
}
