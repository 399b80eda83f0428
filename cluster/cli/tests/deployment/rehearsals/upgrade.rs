//! Every process is replaced by one of a newer build, and by one of the older again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Trials;
use crate::images::built;
use crate::world::{Clients, PROCESSES, World, pause, with_world_of};

const BOTS: u32 = 500;

/// The variable that names the program of the older build.
const OLD: &str = "PURVIEW_OLD";

/// Replaces every process, one by one; how many regions there were, and how often they changed their nodes. An owner of
/// less than a second may be missed.
fn replace_all(world: &World) -> (usize, usize) {
    let is_over = AtomicBool::new(false);
    let epochs = std::thread::scope(|scope| {
        let seen = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            while !is_over.load(Relaxed) {
                seen.extend(world.owners());
                pause(1);
            }
            seen
        });
        for service in PROCESSES {
            println!("{service} replaced in {:.1} s", world.replace(service).as_secs_f64());
        }
        is_over.store(true, Relaxed);
        seen.join().unwrap()
    });
    let regions = epochs.iter().map(|(region, _)| region).collect::<BTreeSet<_>>().len();
    (regions, epochs.len() - regions)
}

#[test]
#[ignore = "takes minutes: deploy/rehearse/upgrade"]
fn a_rolling_upgrade_of_every_process_and_the_way_back_disturb_no_view() {
    let old = std::env::var_os(OLD).map(PathBuf::from);
    let old = old.unwrap_or_else(|| panic!("{OLD} names no program: see deploy/rehearse/upgrade"));
    let file = "cluster/cli/tests/deployment/rehearsals/five-hundred-bots.yaml";
    with_world_of("rehearsals::upgrade", &[file], |world| {
        for (program, image) in [(&built("purview"), "purview:new"), (&old, "purview:old")] {
            world.0.make_image(program, "purview", image);
        }
        let becomes = |image: &str| drop(world.docker(&["tag", image, "purview"]));
        let image_of = |service: &str| {
            let container = super::container(service);
            world.docker(&["inspect", "--format", "{{.Image}}", &container])
        };
        becomes("purview:old");
        world.up(&[]);
        let first = image_of("node-1");
        let mut trials = Trials::of(world, BOTS);
        for (way, image) in [("to the new build", "purview:new"), ("and back", "purview:old")] {
            let mut moved = (0, 0);
            trials.run((&format!("every process {way}"), Clients::Resume), 150, |world| {
                becomes(image);
                moved = replace_all(world);
            });
            let (regions, moves) = moved;
            println!("{regions} regions changed their nodes {moves} times");
            assert!(regions > 0 && moves < 2 * regions, "{moves} moves of {regions} regions");
            let is_old = PROCESSES.map(|service| image_of(service) == first);
            assert_eq!(is_old, [image == "purview:old"; PROCESSES.len()], "{way}");
        }
        trials.end();
    });
}
