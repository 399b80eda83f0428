//! Many regions of a scene in one thread, with seeded deliveries, model clients, and the brute
//! force that everything is checked against.

pub mod brute;
pub mod commands;
pub mod crash;
pub mod decode;
pub mod histories;
pub mod kill;
pub mod mapping;
pub mod moving;
pub mod returning;
#[allow(dead_code)]
#[path = "../../../cluster/demo/src/rng.rs"]
mod rng;
pub mod safety;
pub mod session;
pub mod told;
pub mod touches;
pub mod trial;
pub mod world;

pub use rng::Rng;

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

/// Whose the player of this id is.
pub fn whose(id: purview::scene::EntityId) -> purview::scene::SubjectHash {
    purview::scene::SubjectHash::new((u128::from(id.0) << 60).to_be_bytes())
}

/// Its account.
pub fn account_of(id: purview::scene::EntityId) -> purview::scene::Account {
    purview::scene::Account::new(&format!("player {id}"), Default::default()).expect("short")
}

/// The appearance of an entity in these tests.
pub fn look(id: purview::scene::EntityId) -> purview::scene::properties::Properties {
    let look = format!("look {id}");
    purview::scene::properties::Properties::with_appearance(look.as_bytes()).expect("short")
}
