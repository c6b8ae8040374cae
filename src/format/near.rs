//! Names that are near to one that isn't known.

/// How many bytes must be changed, added or left out to make one of the other.
pub(crate) fn distance(one: &[u8], two: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (above, a) in one.iter().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (left, b) in two.iter().enumerate() {
            let changed = corner + usize::from(a != b);
            corner = row[left + 1];
            row[left + 1] = changed.min(row[left] + 1).min(corner + 1);
        }
    }
    row[two.len()]
}
