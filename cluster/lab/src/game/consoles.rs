//! Surveys of the example game in a cluster: the consoles of its nodes are asked for all entities.

use std::collections::BTreeSet;

use purview::scene::{Kind, Plane};
use serde_json::Value;

use super::accounts::{Holding, Survey};
use purview_server::http::{self, HttpError};

/// A survey, and how many regions have answered.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    pub all: Survey,
    /// The regions that have answered for the plane for which the fewest have.
    pub regions: usize,
}

async fn json(console: &str, path: &str) -> Result<Option<Value>, HttpError> {
    let answer = http::get(&format!("http://{console}"), path).await?;
    Ok((answer.status == 200).then(|| serde_json::from_slice(&answer.body).ok()).flatten())
}

/// Asks the consoles of all nodes, `host:port` each, for the entities of a scene. An entity that leaves a node while that
/// node is asked is left out.
pub async fn survey(
    consoles: &[String],
    scene: &str,
    planes: &[Plane],
) -> Result<Answers, HttpError> {
    let (mut all, mut regions) = (Survey::new(), Vec::new());
    for plane in planes {
        let mut of_plane = BTreeSet::new();
        for console in consoles {
            let path = format!("/api/entities?scene={scene}&plane={}", plane.0);
            let Some(told) = json(console, &path).await? else { continue };
            of_plane.extend(rows(&told["ticks"]).filter_map(|row| row[0].as_u64()));
            for row in rows(&told["entities"]) {
                let (Some(id), Some(kind)) = (row[0].as_u64(), row[1].as_u64()) else { continue };
                let found = json(console, &format!("/api/entity/{id}")).await?;
                if let (Some(found), Ok(kind)) = (found, u8::try_from(kind)) {
                    all.insert(id, Holding::of_json(Kind(kind), &found["properties"]));
                }
            }
        }
        regions.push(of_plane.len());
    }
    Ok(Answers { all, regions: regions.into_iter().min().unwrap_or(0) })
}

fn rows(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter()
}
