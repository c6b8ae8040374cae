//! Keys in tables.

use crate::table::states::*;

#[test]
fn keys_are_told_apart_by_their_parts() {
    let hasher = RandomState::new();
    let mut tables = [(); 2].map(|()| Table::new(&hasher, &[], None));
    let mut all = std::collections::BTreeSet::new();
    let texts = ["", "a", "b", "ab", "a,b", ",", "\0"];
    for (at, one) in texts.iter().enumerate() {
        for (more, two) in texts.iter().enumerate() {
            let mut key = Vec::new();
            push_part(&mut key, one.as_bytes());
            push_part(&mut key, two.as_bytes());
            assert!(parts(&key).eq([one.as_bytes(), two.as_bytes()]));
            let table = &mut tables[(at + more) % 2];
            let group = table.group(&key);
            assert_eq!(table.group(&key), group);
            assert_eq!(table.key(group), key);
            assert_eq!(Group::numbered(group.number()), group);
            all.insert(key);
        }
    }
    let [mut one, two] = tables;
    one.group(all.first().unwrap());
    one.merge(two);
    let got: Vec<_> = one.groups().map(|group| one.key(group).to_vec()).collect();
    assert_eq!(got.len(), 49);
    assert_eq!(
        got.into_iter().collect::<std::collections::BTreeSet<_>>(),
        all
    );
}
