//! A scene of many regions in one thread, with seeded deliveries, model clients, and the brute force
//! against which everything is held.

pub mod brute;
pub mod crash;
pub mod decode;
pub mod kill;
pub mod mapping;
pub mod moving;
pub mod returning;
pub mod safety;
pub mod session;
pub mod trial;
pub mod world;

/// A small seeded generator (SplitMix64): the same seed, the same history, on every machine.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `lo` to below `hi`.
    pub fn range(&mut self, lo: i32, hi: i32) -> i32 {
        lo + (self.next() % (hi - lo) as u64) as i32
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// `PURVIEW_SEEDS=FROM..TO` runs other seeds than the few that every run has.
pub fn seeds(most: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("PURVIEW_SEEDS") else { return 0..most };
    let (from, to) = text.split_once("..").expect("PURVIEW_SEEDS=FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// Says how to see the failure of a seed again.
pub fn say_how_to_replay(file: &str, seed: u64) {
    let thread = std::thread::current();
    let all = format!("{file}::");
    let test = thread.name().filter(|name| *name != "main").unwrap_or(&all);
    eprintln!("PURVIEW_SEEDS={seed}..{} cargo test -p purview --test it {test}", seed + 1);
}

/// Whether other seeds than the few of every run were asked for.
pub fn seeds_are_given() -> bool {
    std::env::var_os("PURVIEW_SEEDS").is_some()
}
