//! `purview dev --engine etcd` plays the game as `purview dev` does.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::operations::get;
use super::super::process::{FREE_PORTS, assert_clean, figure, purview, run};

/// How long the hunters may take for their first gold.
const PATIENCE: Duration = Duration::from_secs(120);

/// The command with its cluster. Dropping it ends both.
struct Dev(Child);

impl Drop for Dev {
    fn drop(&mut self) {
        // It ends its processes itself.
        let pid = self.0.id().to_string();
        drop(Command::new("kill").args(["-TERM", &pid]).status());
        drop(self.0.wait());
    }
}

fn json(console: &str, path: &str) -> Option<Value> {
    let (status, body) = get(console, path);
    (status == 200).then(|| serde_json::from_str(&body).unwrap())
}

/// Whether a player in the regions of a node has gold.
fn has_gold(console: &str) -> bool {
    let Some(all) = json(console, "/api/entities?scene=meadow&plane=0") else { return false };
    let players = all["entities"].as_array().unwrap().iter().filter(|entity| entity[1] == 0);
    let gold = |id: u64| {
        let entity = json(console, &format!("/api/entity/{id}"))?;
        let properties = entity["properties"].as_array()?.clone();
        properties.iter().find(|property| property["name"] == "gold")?["value"].as_i64()
    };
    players.filter_map(|player| gold(player[0].as_u64()?)).any(|gold| gold > 0)
}

#[test]
fn hunters_win_gold_in_the_cluster_of_dev() {
    let args = ["dev", "--engine", "etcd", "--nodes", "2", "--bots", "6"];
    let mut child =
        purview(&[&args[..], &FREE_PORTS].concat()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let dev = Dev(child);
    let mut nodes = Vec::new();
    for line in lines.by_ref().map_while(Result::ok) {
        if let Some((name, console)) = line.split_once(" console http://") {
            nodes.extend(
                name.starts_with("node-").then(|| console.trim_end_matches('/').to_owned()),
            );
        }
        if line.contains(" bots; ") {
            break;
        }
    }
    assert_eq!(nodes.len(), 2, "each node has a console");
    let begin = Instant::now();
    while !nodes.iter().any(|console| has_gold(console)) {
        assert!(begin.elapsed() < PATIENCE, "no hunter has won gold");
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(dev);
}

#[test]
fn the_cluster_of_dev_judges_the_game_and_counts_its_gold_at_the_end() {
    let args = ["dev", "--engine", "etcd", "--nodes", "2", "--bots", "6", "--for", "15s", "--json"];
    let report = assert_clean(&run(&[&args[..], &FREE_PORTS].concat()));
    assert!(figure(&report, "/game/checks") > 0.0, "{report}");
    assert!(figure(&report, "/game/minted") > 0.0, "{report}");
    for fault in ["gold", "taken_twice", "hit_points"] {
        assert_eq!(report["game"][fault], 0, "{fault}: {report}");
    }
    assert!(report["game"]["dead_acts"].is_null(), "only a node can see it: {report}");
}
