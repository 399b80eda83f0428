//! What a pair costs: the process is measured at its peak, in every mode.

use purview::interest::{Cap, Mode, Radii, Reach, Rules};
use purview::scene::RangeSet;

use super::support::{GROUND, ask, create, outcome, scene, tick, with_stream};

/// What the process may take beside its pairs: parts of outcomes, unread and kept updates, and what the allocator keeps
/// of them for each thread.
const FIXED: usize = 88 << 20;

/// Entities, and how many others each sees.
const CROWD: u64 = 3_000;

/// The bytes that the process takes at most while all pairs appear, and then disappear, and the
/// number of pairs.
fn peak(rules: &Rules) -> (usize, usize) {
    with_stream(&["--keep", "1"], async |service, mut stream| {
        // One pair: what a session has is there.
        ask(&mut stream, vec![scene(1, rules), create(1, &[(1, 0, 0), (2, 0, 0)]), tick(1)]).await;
        let before = service.most_memory();
        let place = |id: u64| (id, (37 * id % 300) as i32, (53 * id % 300) as i32);
        let places: Vec<_> = (3..=CROWD).map(place).collect();
        let (mut appeared, mut events) = (0, 2);
        for appears in [true, false] {
            let ids = (1..=CROWD).collect();
            let gone = purview_server::interest::proto::Delete { ids };
            let gone = purview_server::interest::proto::change::Change::Delete(gone);
            let change = match appears {
                true => create(1, &places),
                false => purview_server::interest::encode::change(1, gone),
            };
            let batch = stream.send(vec![change, tick(1)]).await.unwrap();
            loop {
                let outcome = outcome(&mut stream).await.unwrap();
                events += outcome.scenes.iter().map(|scene| scene.observers.len()).sum::<usize>();
                if outcome.applied >= batch {
                    break;
                }
            }
            if appears {
                appeared = events;
            }
        }
        assert!(events >= 2 * appeared - 100, "{events} {appeared}");
        (service.most_memory() - before, events / 2)
    })
}

/// All see all.
const PAIRS: usize = (CROWD * (CROWD - 1)) as usize;

fn at_most_16_bytes(rules: &Rules, pairs: std::ops::RangeInclusive<usize>) {
    let (taken, found) = peak(rules);
    let each = taken.saturating_sub(FIXED) as f64 / PAIRS as f64;
    println!("{:?}: {taken} bytes, beyond {FIXED} {each:.1} for each pair", rules.mode);
    assert!(pairs.contains(&found), "{found} pairs");
    assert!(taken <= FIXED + 16 * PAIRS, "{taken} bytes for {PAIRS} pairs");
}

#[test]
fn a_pair_of_a_circle_takes_at_most_16_bytes() {
    let rules = Rules::new(GROUND, Mode::Circle, Reach::Circle(Radii::new(700, 800)));
    at_most_16_bytes(&rules, PAIRS..=PAIRS);
}

#[test]
fn a_pair_of_a_whole_plane_or_of_patches_takes_at_most_16_bytes() {
    at_most_16_bytes(&Rules::new(GROUND, Mode::All, Reach::All), PAIRS..=PAIRS);
    let rings = Reach::Rings(RangeSet::FULL);
    let rules = Rules::new(GROUND, Mode::Patches { patch_cm: 400 }, rings);
    at_most_16_bytes(&rules, PAIRS..=PAIRS);
}

#[test]
fn a_pair_in_range_of_lists_takes_at_most_16_bytes() {
    let cap = Some(Cap { most: 50, margin_cm: 100 });
    let rules = Rules::new(GROUND, Mode::Circle, Reach::Circle(Radii::new(700, 800)));
    let most = CROWD as usize * 50;
    at_most_16_bytes(&Rules { cap, ..rules }, most * 9 / 10..=most);
}
