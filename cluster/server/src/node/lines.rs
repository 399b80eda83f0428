//! Lines over several gateways: each counts the players that joined through it, and asks the others
//! every second for theirs, so that all fill one line after another. Gateways do not see each
//! other's joins within that second: a line may exceed its capacity by as many.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::RwLock;
use purview::actor::directory::Directory;
use purview::wire::peer::query::{Answer, Fullness, Question};

use crate::peer::Links;
use crate::storage::View;

/// Time between two questions.
const EVERY: Duration = Duration::from_secs(1);

pub(super) fn answer(directory: &Directory) -> Answer {
    let fullness = |(scene, plane, players)| Fullness { scene, plane, players };
    Answer {
        lines: directory.lines_here().into_iter().map(fullness).collect(),
        ..Answer::default()
    }
}

/// Keeps the places that were taken by other gateways up to date in `directory`, for ever.
pub(super) async fn follow(directory: Arc<Directory>, links: Links, views: Arc<RwLock<View>>) {
    // A gateway that does not answer counts with its last answer, for as long as it is a member.
    let mut told: BTreeMap<u64, Vec<Fullness>> = BTreeMap::new();
    loop {
        tokio::time::sleep(EVERY).await;
        let others: Vec<u64> = {
            let view = views.read();
            let others = view.nodes.values().filter(|node| node.gateway);
            others.map(|node| node.process).filter(|other| *other != links.process()).collect()
        };
        told.retain(|process, _| others.contains(process));
        let asked = others.iter().map(|other| links.ask(*other, Question::Lines));
        for (other, answer) in others.iter().zip(join_all(asked).await) {
            told.extend(answer.map(|answer| (*other, answer.lines)));
        }
        let taken = told.values().flatten().map(|line| (line.scene, line.plane, line.players));
        directory.set_lines_elsewhere(taken);
    }
}
