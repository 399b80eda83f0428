//! Many regions of a scene in one thread, with seeded deliveries, model clients, and the brute
//! force that everything is checked against.

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

/// A small seeded generator (SplitMix64): equal seeds give equal histories on every machine.
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

/// The seeds of a run; `PURVIEW_SEEDS=FROM..TO` replaces the default ones.
pub fn seeds(most: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("PURVIEW_SEEDS") else { return 0..most };
    let (from, to) = text.split_once("..").expect("PURVIEW_SEEDS=FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// Prints the command that replays a seed's failure.
pub fn say_how_to_replay(file: &str, seed: u64) {
    let thread = std::thread::current();
    let all = format!("{file}::");
    let test = thread.name().filter(|name| *name != "main").unwrap_or(&all);
    eprintln!("PURVIEW_SEEDS={seed}..{} cargo test -p purview --test it {test}", seed + 1);
}

/// Whether `PURVIEW_SEEDS` is set.
pub fn seeds_are_given() -> bool {
    std::env::var_os("PURVIEW_SEEDS").is_some()
}
