//! Sorting many integers of few bits, digit by digit: without comparisons, which a processor cannot
//! foresee.

/// Most bits of a digit: the counts of its values fit into the first cache.
const DIGIT: u32 = 11;

/// From so many keys on digits are faster than comparisons.
const MANY: usize = 512;

/// Sorts keys, all of which are less than 2^`bits`. `spare` is a buffer.
pub fn sort(keys: &mut Vec<u64>, spare: &mut Vec<u64>, bits: u32) {
    if keys.len() < MANY || keys.len() > u32::MAX as usize {
        return keys.sort_unstable();
    }
    // What is there is overwritten.
    spare.resize(keys.len(), 0);
    let passes = bits.div_ceil(DIGIT);
    let digit = bits.div_ceil(passes);
    for pass in 0..passes {
        if place(keys, spare, (pass * digit, digit)) {
            std::mem::swap(keys, spare);
        }
    }
}

/// Puts keys into the order of a digit: its lowest bit, and its length. `false`: all have the same
/// one, and nothing was done.
fn place(keys: &[u64], to: &mut [u64], (from, bits): (u32, u32)) -> bool {
    let mut next = [0_u32; 1 << DIGIT];
    let next = &mut next[..1 << bits];
    let digit = |key: u64| (key >> from) as usize & ((1 << bits) - 1);
    keys.iter().for_each(|key| next[digit(*key)] += 1);
    if keys.first().is_some_and(|key| next[digit(*key)] as usize == keys.len()) {
        return false;
    }
    let mut start = 0;
    for count in next.iter_mut() {
        start += std::mem::replace(count, start);
    }
    for key in keys {
        let next = &mut next[digit(*key)];
        to[*next as usize] = *key;
        *next += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interest::tests::Rng;

    #[test]
    fn keys_of_any_length_are_sorted() {
        let mut rng = Rng(3);
        for bits in [1, 2, 11, 12, 29, 43, 63] {
            for len in [0, 1, MANY - 1, MANY, 5_000] {
                let mut keys: Vec<u64> = (0..len).map(|_| rng.next() >> (64 - bits)).collect();
                let mut sorted = keys.clone();
                sorted.sort_unstable();
                sort(&mut keys, &mut Vec::new(), bits);
                assert_eq!(keys, sorted, "{bits} bits, {len} keys");
            }
        }
        let mut same = vec![77; MANY];
        sort(&mut same, &mut vec![1, 2], 40);
        assert_eq!(same, [77; MANY]);
    }
}
