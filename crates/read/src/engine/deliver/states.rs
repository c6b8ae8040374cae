//! The state of a stateful framing at each place where a file is cut, from the effects of all bytes before it.
//!
//! A *tile* is a part of a file that one read or one worker fetches. Tiles lie side by side from the first byte of the file
//! or of a part on, without gaps or overlaps: those at the edges of a span or a worker's block begin and end where the search
//! for a record's end begins. Whoever fetches a tile posts its effect. Tiles are posted in any order. The state at a tile's
//! start is known as soon as all tiles before it are posted.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use crate::engine::wakes::Wakes;
use crate::record::framing::{Effect, State};
use crate::sync::lock;

/// The states of a run.
#[derive(Debug)]
pub(crate) struct States {
    /// By the source's number.
    files: Mutex<Vec<File>>,
    /// More is known, there is other work, or the run ends.
    pub(crate) wakes: Wakes,
}

#[derive(Debug)]
struct File {
    /// All tiles before this byte are posted.
    at: u64,
    /// The state there.
    state: State,
    /// Tiles after it, by their first byte.
    posted: BTreeMap<u64, Tile>,
    /// The state at the start of each tile before it that is still to be asked for.
    before: BTreeMap<u64, State>,
}

#[derive(Debug)]
struct Tile {
    /// One past its last byte.
    end: u64,
    effect: Effect,
    /// Whether the state at its start is going to be asked for.
    needs_start: bool,
}

impl States {
    /// Of each file nothing is known yet but the state at one byte, which the first tile begins at.
    pub(crate) fn new(files: Vec<(u64, State)>) -> States {
        let file = |(at, state)| File {
            at,
            state,
            posted: BTreeMap::new(),
            before: BTreeMap::new(),
        };
        States {
            files: Mutex::new(files.into_iter().map(file).collect()),
            wakes: Wakes::default(),
        }
    }

    /// Posts the effect of a tile. `needs_start` says that the caller is going to ask for the state at its start, once.
    pub(crate) fn post(&self, source: u32, tile: Range<u64>, effect: Effect, needs_start: bool) {
        if tile.is_empty() {
            return;
        }
        let mut files = lock(&self.files);
        let file = &mut files[source as usize];
        let posted = Tile {
            end: tile.end,
            effect,
            needs_start,
        };
        file.posted.insert(tile.start, posted);
        let known = file.at;
        while let Some(tile) = file.posted.remove(&file.at) {
            if tile.needs_start {
                file.before.insert(file.at, file.state);
            }
            file.state = tile.effect.apply(file.state);
            file.at = tile.end;
        }
        if file.at > known {
            drop(files);
            self.wakes.wake();
        }
    }

    /// The state at the start of a tile, if it is known.
    pub(crate) fn before(&self, source: u32, tile: &Range<u64>) -> Option<State> {
        let file = &mut lock(&self.files)[source as usize];
        if file.at == tile.start {
            return Some(file.state);
        }
        match tile.is_empty() {
            true => file.before.get(&tile.start).copied(),
            false => file.before.remove(&tile.start),
        }
    }

    /// Waits for the state at the start of a tile; `None` when the run is `given_up` there.
    pub(crate) fn wait_before(
        &self,
        source: u32,
        tile: &Range<u64>,
        given_up: impl Fn() -> bool,
        mut meanwhile: impl FnMut() -> bool,
    ) -> Option<State> {
        loop {
            let noted = self.wakes.count();
            if let Some(state) = self.before(source, tile) {
                return Some(state);
            }
            if given_up() {
                return None;
            }
            if meanwhile() {
                continue;
            }
            self.wakes.sleep(noted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::framing::Framing;
    use crate::record::quoted::Quoted;

    #[test]
    fn the_state_is_known_when_all_tiles_before_it_were_posted() {
        let text = b"a,\"b\nc\",\"\"\"\nd\",e\n";
        let csv = Quoted::CSV;
        let effect =
            |range: &Range<u64>| csv.effect(&text[range.start as usize..range.end as usize]);
        let state = |at: u64| effect(&(0..at)).apply(csv.initial());
        let tiles = [0..3, 3..3, 3..4, 4..9, 9..text.len() as u64];
        for first in 0..tiles.len() {
            let states = States::new(vec![(0, csv.initial())]);
            let mut known = 0;
            for n in 0..tiles.len() {
                // Two from the end, then the first one, then the rest: any order will do.
                let tile = &tiles[(first + 3 * n) % tiles.len()];
                states.post(0, tile.clone(), effect(tile), true);
            }
            for tile in &tiles {
                assert_eq!(states.before(0, tile), Some(state(tile.start)), "{tile:?}");
                known += 1;
            }
            assert_eq!(known, tiles.len());
            assert!(lock(&states.files)[0].before.is_empty(), "nothing is kept");
        }
        let states = States::new(vec![(0, csv.initial())]);
        states.post(0, 3..4, effect(&(3..4)), true);
        assert_eq!(states.before(0, &(3..4)), None);
        assert_eq!(states.before(0, &(0..3)), Some(csv.initial()));
    }
}
