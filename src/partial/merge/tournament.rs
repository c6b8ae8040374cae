//! Which of several inputs has the least key: a tournament in which each match keeps its loser.
//!
//! Keys are compared by a number that begins like them. Only where two of these are the same, the keys are looked at. So a
//! match has no branch that hangs on the data.

use std::hint::select_unpredictable;

/// An input with its next key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entrant {
    /// The first bytes of the key as a number.
    pub(crate) prefix: u64,
    /// [`NONE`] is behind all others.
    pub(crate) input: u32,
}

/// No input.
pub(crate) const NONE: u32 = u32::MAX;

const NOBODY: Entrant = Entrant {
    prefix: u64::MAX,
    input: NONE,
};

/// Inputs by their next keys.
#[derive(Debug, Default)]
pub(crate) struct Tournament {
    /// The loser of each match; the winners of matches 2n and 2n + 1 play match n. The winner of match 1 is at 0.
    matches: Vec<Entrant>,
}

impl Tournament {
    /// Begins with the prefixes of inputs 0, 1 and so on. `is_before` compares the keys of two inputs, where prefixes are the
    /// same.
    pub(crate) fn start(
        &mut self,
        prefixes: impl ExactSizeIterator<Item = u64>,
        is_before: impl Fn(u32, u32) -> bool,
    ) {
        let leaves = prefixes.len().next_power_of_two();
        let entrants = (0..)
            .zip(prefixes)
            .map(|(input, prefix)| Entrant { prefix, input });
        let mut round: Vec<Entrant> = entrants
            .chain(std::iter::repeat(NOBODY))
            .take(leaves)
            .collect();
        self.matches.clear();
        self.matches.resize(leaves, NOBODY);
        while round.len() > 1 {
            let half = round.len() / 2;
            for at in 0..half {
                let (mut winner, mut loser) = (round[2 * at], round[2 * at + 1]);
                play(&mut winner, &mut loser, &is_before);
                (round[at], self.matches[half + at]) = (winner, loser);
            }
            round.truncate(half);
        }
        self.matches[0] = round[0];
    }

    /// The input with the least key.
    pub(crate) fn winner(&self) -> Entrant {
        self.matches[0]
    }

    /// Goes on with the winner's next key, or without it where there is none.
    pub(crate) fn replace_winner(
        &mut self,
        prefix: Option<u64>,
        is_before: impl Fn(u32, u32) -> bool,
    ) {
        let input = self.matches[0].input;
        let mut here = match prefix {
            Some(prefix) => Entrant { prefix, input },
            None => NOBODY,
        };
        let mut place = (self.matches.len() + input as usize) / 2;
        while place > 0 {
            play(&mut here, &mut self.matches[place], &is_before);
            place /= 2;
        }
        self.matches[0] = here;
    }
}

/// Puts the one with the lesser key first.
#[inline(always)]
fn play(one: &mut Entrant, two: &mut Entrant, is_before: &impl Fn(u32, u32) -> bool) {
    let mut is_wrong = two.prefix < one.prefix;
    if two.prefix == one.prefix && two.input != NONE {
        is_wrong = one.input == NONE || is_before(two.input, one.input);
    }
    // Moves on a condition, not branches: the next match waits for this one's winner.
    let select = |if_wrong: Entrant, otherwise: Entrant| Entrant {
        prefix: select_unpredictable(is_wrong, if_wrong.prefix, otherwise.prefix),
        input: select_unpredictable(is_wrong, if_wrong.input, otherwise.input),
    };
    (*one, *two) = (select(*two, *one), select(*one, *two));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_keys_come_in_order(inputs in prop::collection::vec(prop::collection::vec((0..4_u64, 0..3_u8), 1..20), 1..9)) {
            let mut inputs = inputs;
            inputs.iter_mut().for_each(|input| {
                input.iter_mut().for_each(|key| {
                    if key.0 == 3 {
                        key.0 = u64::MAX;
                    }
                });
                input.sort_unstable();
            });
            let rows = std::cell::RefCell::new(vec![0; inputs.len()]);
            let is_before = |one: u32, two: u32| {
                let key = |input: u32| inputs[input as usize][rows.borrow()[input as usize]];
                (key(one), one) < (key(two), two)
            };
            let mut tournament = Tournament::default();
            tournament.start(inputs.iter().map(|input| input[0].0), is_before);
            let mut found = Vec::new();
            while tournament.winner().input != NONE {
                let input = tournament.winner().input as usize;
                let row = rows.borrow()[input];
                prop_assert_eq!(inputs[input][row].0, tournament.winner().prefix);
                found.push((inputs[input][row], input));
                let next = inputs[input].get(row + 1).map(|key| key.0);
                if next.is_some() {
                    rows.borrow_mut()[input] += 1;
                }
                tournament.replace_winner(next, is_before);
            }
            let own = |(input, keys): (usize, &Vec<(u64, u8)>)| {
                keys.iter().map(|key| (*key, input)).collect::<Vec<_>>()
            };
            let mut want: Vec<_> = inputs.iter().enumerate().flat_map(own).collect();
            want.sort_unstable();
            prop_assert_eq!(found, want);
        }
    }
}
