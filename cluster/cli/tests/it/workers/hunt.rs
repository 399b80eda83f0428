//! The example game over gRPC, in Python, by an encrypted connection. `end_to_end::cluster::game` plays it in a cluster.

use purview::actor::messages::Inspect;
use purview::scene::Kind;

use super::refusals::Secured;
use super::support::{runtime, server};
use crate::common::tries;
use crate::foreign::{PythonWorker, python_worker, run};

const MONSTER: Kind = Kind(1);

/// Monsters of all regions.
const MONSTERS: usize = 20;

#[test]
fn the_library_in_python_passes_its_tests() {
    let (folder, python) = python_worker();
    run(&folder, python, &["-m", "unittest", "test_purview_worker"]);
}

#[test]
fn the_game_in_python_connects_by_tls_with_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let secured = Secured::in_folder(folder.path());
    let server = server(&secured.config);
    let (reach, ca) = (server.reach(), secured.authority.file("ca.pem"));
    let address = reach.logic.expect("workers can connect").to_string();
    let worker = PythonWorker::start("hunt.py", &address, &[secured.token, ca.to_str().unwrap()]);
    runtime().block_on(tries("the worker sends monsters", async || {
        let mut monsters = 0;
        for region in reach.hosted.now().iter() {
            let all = region.inspect.send(Inspect { plane: None }).await.expect("the region runs");
            monsters += all.entities.iter().filter(|e| !e.ghost && e.kind == MONSTER).count();
        }
        if monsters < MONSTERS { Err(monsters) } else { Ok(()) }
    }));
    drop(worker);
}
