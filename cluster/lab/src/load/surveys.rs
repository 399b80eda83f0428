//! Judges the example game in a cluster of processes while clients hunt: `purview-lab load walk --engine etcd`, and tests.

use std::collections::BTreeSet;
use std::time::Duration;

use purview::scene::{Kind, Plane};
use purview_server::http::{self, HttpError};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::game::accounts::{Accounts, Holding, Survey};

/// Between two surveys.
const PERIOD: Duration = Duration::from_secs(1);

/// Surveys at rest that must be equal, before gold is counted.
const QUIET: usize = 3;

/// How long the game may take to come to rest, once no player does anything: drops that are claimed wait for checkpoints.
const RESTS: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Surveys {
    /// The consoles of all nodes, `host:port` each.
    pub consoles: Vec<String>,
    pub scenes: Vec<SurveyedScene>,
}

#[derive(Debug, Clone)]
pub struct SurveyedScene {
    pub name: String,
    pub planes: Vec<Plane>,
    pub regions: usize,
}

/// What a console answers; nothing if something is wrong.
async fn ask(console: &str, path: &str) -> Result<Option<Value>, HttpError> {
    let answer = http::get(&format!("http://{console}"), path).await?;
    Ok((answer.status == 200).then(|| serde_json::from_slice(&answer.body).ok()).flatten())
}

fn rows(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter()
}

impl SurveyedScene {
    /// Asks all consoles for the entities of the scene. An entity that leaves a node while that node is asked is left
    /// out. Gives how many regions have answered, for the plane for which the fewest have.
    async fn take(&self, consoles: &[String], all: &mut Survey) -> Result<usize, HttpError> {
        let mut regions = Vec::new();
        for plane in &self.planes {
            let mut of_plane = BTreeSet::new();
            for console in consoles {
                let path = format!("/api/entities?scene={}&plane={}", self.name, plane.0);
                let Some(told) = ask(console, &path).await? else { continue };
                of_plane.extend(rows(&told["ticks"]).filter_map(|row| row[0].as_u64()));
                for row in rows(&told["entities"]) {
                    let (Some(id), Some(kind)) = (row[0].as_u64(), row[1].as_u64()) else {
                        continue;
                    };
                    let found = ask(console, &format!("/api/entity/{id}")).await?;
                    if let (Some(found), Ok(kind)) = (found, u8::try_from(kind)) {
                        all.insert(id, Holding::of_json(Kind(kind), &found["properties"]));
                    }
                }
            }
            regions.push(of_plane.len());
        }
        Ok(regions.into_iter().min().unwrap_or(0))
    }
}

/// An entity, its kind, its gold, what it has given, and the drops that it has taken.
type Purse<'a> = (u64, Kind, i64, i64, &'a [(u64, u64)]);

fn gold(all: &Survey) -> Vec<Purse<'_>> {
    all.iter().map(|(id, e)| (*id, e.kind, e.gold, e.minted, &e.taken[..])).collect()
}

impl Surveys {
    /// All entities; nothing if some region does not say.
    pub async fn take(&self) -> Option<Survey> {
        let mut all = Survey::new();
        for scene in &self.scenes {
            if scene.take(&self.consoles, &mut all).await.ok()? < scene.regions {
                return None;
            }
        }
        Some(all)
    }

    /// Judges the game until it is dropped.
    pub async fn watch(&self, judge: &mut Accounts) {
        loop {
            if let Some(all) = self.take().await {
                judge.judge(all);
            }
            sleep(PERIOD).await;
        }
    }

    /// Waits until the gold of a game rests in which no player does anything any more, and counts it.
    pub async fn rest(&self, judge: &mut Accounts) {
        let (begin, mut last, mut alike) = (Instant::now(), Survey::new(), 0);
        while begin.elapsed() < RESTS {
            if let Some(all) = self.take().await {
                alike = if gold(&all) == gold(&last) { alike + 1 } else { 1 };
                last.clone_from(&all);
                judge.judge(all);
                if alike >= QUIET {
                    judge.count_gold();
                    return;
                }
            }
            sleep(PERIOD / 4).await;
        }
        judge.is_restless();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    /// A console with a lair in each of two scenes. Gives its address.
    fn console() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut asked = String::new();
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                lines.read_line(&mut asked).unwrap();
                while lines.read_line(&mut String::new()).unwrap() > 2 {}
                let body = answer(asked.split(' ').nth(1).unwrap());
                let head = format!("content-length: {}\r\nconnection: close", body.len());
                write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").unwrap();
            }
        });
        addr
    }

    fn answer(path: &str) -> &'static str {
        match path {
            "/api/entities?scene=wood&plane=0" => r#"{"ticks": [[0, 7]], "entities": [[1, 3]]}"#,
            "/api/entities?scene=grove&plane=0" => r#"{"ticks": [[4, 7]], "entities": [[2, 3]]}"#,
            "/api/entity/1" => r#"{"properties": [{"id": 5, "value": 10}]}"#,
            "/api/entity/2" => r#"{"properties": [{"id": 5, "value": 30}]}"#,
            _ => "{}",
        }
    }

    #[tokio::test]
    async fn a_survey_has_the_entities_of_all_scenes_or_is_none() {
        let scene = |name: &str, regions| SurveyedScene {
            name: name.into(),
            planes: vec![Plane(0)],
            regions,
        };
        let (wood, grove) = (scene("wood", 1), scene("grove", 1));
        let mut surveys = Surveys { consoles: vec![console()], scenes: vec![wood, grove] };
        let all = surveys.take().await.unwrap();
        let minted: Vec<_> = all.iter().map(|(id, lair)| (*id, lair.minted)).collect();
        assert_eq!(minted, [(1, 10), (2, 30)]);
        surveys.scenes[1].regions = 2;
        assert_eq!(surveys.take().await, None);
    }
}
