//! A region's actor is asked to leave by a caller that gives up waiting, or cannot reach another region for a time.

use std::sync::{Arc, Mutex};

use actix::Addr;
use actix::dev::SendError;
use purview::actor::address::{Passing, RegionAddress, RemoteRegion};
use purview::actor::directory::{Directory, Process};
use purview::actor::messages::{Inspect, RunTick, ToRegion};
use purview::actor::region::metrics::RegionMetrics;
use purview::actor::region::migration::depart::{Depart, Departing};
use purview::actor::region::{Clock, RegionActor};
use purview::scene::messages::{Input, Recovered};
use purview::scene::mutants::{Mutant, is_noticed_by};
use purview::scene::{Epoch, Region, RegionId, Scene, SceneId, Tick};

use crate::support::small_scene;

pub const HERE: RegionId = RegionId(0);
const ELSEWHERE: RegionId = RegionId(1);

/// A region of another process.
#[derive(Debug, Default)]
pub struct Elsewhere {
    pub took: Mutex<Vec<ToRegion>>,
    pub passed: Mutex<Vec<Passing>>,
    /// The other region has no room; at the first attempt this departure is given up.
    gives_up: Mutex<Option<Departing>>,
    pub is_full: Mutex<bool>,
}

impl Elsewhere {
    /// Which of its questions were answered.
    fn answers(&self) -> Vec<Epoch> {
        let took = self.took.lock().unwrap();
        let answers = took.iter().filter_map(|msg| match &msg.input {
            Input::Claims(claims) => claims.answer,
            _ => None,
        });
        answers.collect()
    }
}

impl RemoteRegion for Elsewhere {
    fn try_send(&self, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        drop(self.gives_up.lock().unwrap().take());
        match *self.is_full.lock().unwrap() {
            true => Err(SendError::Full(msg)),
            false => {
                self.took.lock().unwrap().push(msg);
                Ok(())
            }
        }
    }

    fn pass_on(&self, passing: Passing) -> Result<(), SendError<Passing>> {
        match *self.is_full.lock().unwrap() {
            true => Err(SendError::Full(passing)),
            false => {
                self.passed.lock().unwrap().push(passing);
                Ok(())
            }
        }
    }
}

pub fn region() -> (Arc<Directory>, Addr<RegionActor>) {
    let spec = small_scene((1, 1), 6_400, 1_600);
    let scene = Arc::new(Scene::new(SceneId(0), spec, 100, HERE).unwrap());
    assert_eq!(scene.map.regions.len(), 1);
    let process =
        Process { number: 1, clock: Default::default(), fence: None, checkpoint_writer: None };
    let directory = Arc::new(Directory::of_process(vec![scene.clone()], process));
    let region = Region::new(scene.clone(), HERE).unwrap();
    let metrics = Arc::new(RegionMetrics::default());
    let actor = RegionActor::new(region, scene.tick_ms, Clock::Manual, &directory, &metrics);
    let address = actix::Actor::start(actor);
    directory.set_region(HERE, Some(address.clone().recipient().into()));
    (directory, address)
}

/// A query that the region answers, to `ELSEWHERE`.
fn question(epoch: u64) -> ToRegion {
    let news = Recovered { region: ELSEWHERE, epoch: Epoch(epoch), map: 1, holds: Vec::new() };
    ToRegion { input: Input::Recovered(Box::new(news)), client: None }
}

pub async fn tick(region: &Addr<RegionActor>, at: u64) -> Tick {
    region.send(RunTick(Tick(at))).await.unwrap();
    region.send(Inspect { plane: None }).await.unwrap().tick
}

#[actix_rt::test]
async fn a_region_stays_if_the_caller_gives_up_while_it_leaves() {
    let (directory, region) = region();
    let elsewhere = Arc::new(Elsewhere::default());
    directory.set_region(ELSEWHERE, Some(RegionAddress::Remote(elsewhere.clone())));
    assert_eq!(tick(&region, 1).await, Tick(1));
    *elsewhere.is_full.lock().unwrap() = true;
    region.send(question(5)).await.unwrap();
    let (depart, departing) = Depart::new(Some(elsewhere.clone()));
    *elsewhere.gives_up.lock().unwrap() = Some(departing);
    region.send(depart).await.unwrap();
    assert!(elsewhere.gives_up.lock().unwrap().is_none(), "the region began to leave");
    assert_eq!(tick(&region, 2).await, Tick(2), "the region goes on");
    assert!(matches!(directory.region(HERE), Some(RegionAddress::Here(_))), "and can be found");
    *elsewhere.is_full.lock().unwrap() = false;
    region.send(question(6)).await.unwrap();
    assert_eq!(elsewhere.answers(), [Epoch(5), Epoch(6)], "nothing is lost");
    assert!(elsewhere.passed.lock().unwrap().is_empty(), "nothing is forwarded");
}

#[actix_rt::test]
async fn a_caller_that_times_out_too_late_gets_the_departed_region() {
    let (directory, region) = region();
    let elsewhere = Arc::new(Elsewhere::default());
    assert_eq!(tick(&region, 1).await, Tick(1));
    let (depart, departing) = Depart::new(Some(elsewhere.clone()));
    region.send(depart).await.unwrap();
    // The time limit is over at once, but the region has left.
    let departure = departing.unless(std::future::ready(())).await.expect("the departed state");
    assert_eq!((departure.snapshot.region(), departure.snapshot.tick()), (HERE, Tick(1)));
    region.send(question(5)).await.unwrap();
    let passed = elsewhere.passed.lock().unwrap();
    assert!(matches!(&passed[..], [Passing::Mark(_), Passing::Message(_)]), "{passed:?}");
    assert!(matches!(directory.region(HERE), Some(RegionAddress::Remote(_))));
}

#[actix_rt::test]
async fn a_region_stays_if_no_caller_waits_any_more() {
    let (_directory, region) = region();
    assert_eq!(tick(&region, 1).await, Tick(1));
    let (depart, departing) = Depart::new(None);
    drop(departing);
    region.send(depart).await.unwrap();
    assert_eq!(tick(&region, 2).await, Tick(2));
}

/// Its address is not known while it moves, or until it has its next owner.
#[actix_rt::test]
async fn what_is_for_a_region_without_an_address_waits_for_it() {
    let (directory, region) = region();
    let elsewhere = Arc::new(Elsewhere::default());
    region.send(question(5)).await.unwrap();
    tick(&region, 1).await;
    directory.set_region(ELSEWHERE, Some(RegionAddress::Remote(elsewhere.clone())));
    tick(&region, 2).await;
    assert_eq!(elsewhere.answers(), [Epoch(5)]);
}

#[test]
fn these_tests_notice_bugs() {
    let waits = what_is_for_a_region_without_an_address_waits_for_it;
    assert!(is_noticed_by(Mutant::NowhereLost, waits));
}
