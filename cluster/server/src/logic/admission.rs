//! Workers decide whether players may come: questions to them, and planes that they have opened.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::RwLockReadGuard;
use purview::actor::admission::{Admission, PendingDecision, Reason, Visitor};
use purview::scene::{Plane, SceneId};
use purview::wire::peer::{PlaneNews, WorkerMsg, WorkerQuestion};

use super::hub::{Decided, Hub, Limits, first_for};
use super::planes::{PlaneError, Planes};
use super::proto::{self, PrivatePlane, response};
use super::told::encode;
use super::worker::Worker;
use crate::config::AskAbout;
use crate::questions::COUNT_BITS;
use crate::storage::leases::names::GATEWAY_NUMBERS;

fn is_asked(limits: &Limits, visitor: &Visitor) -> bool {
    match limits.ask {
        AskAbout::Nobody => false,
        AskAbout::Joins => !visitor.jumps,
        AskAbout::Jumps => visitor.jumps,
        AskAbout::Both => true,
    }
}

pub(super) fn answer(allow: bool, plane: Option<Plane>, reason: Reason) -> Decided {
    if allow { Ok(plane) } else { Err(reason) }
}

impl Admission for Hub {
    fn ask(&self, visitor: Visitor) -> Option<PendingDecision> {
        let limits = self.limits;
        if !is_asked(&limits, &visitor) {
            return None;
        }
        let policy = match limits.admits_unanswered {
            true => Ok(None),
            false => Err("the game does not answer; try again".to_owned()),
        };
        let fits = |worker: &Arc<Worker>| {
            let profile = &worker.profile;
            profile.answers && profile.scene == visitor.to.scene && !worker.is_gone()
        };
        let mut workers = self.all();
        workers.retain(fits);
        // The one that has the region knows most of it. One that hangs holds up one player, and not each of them.
        let region = visitor.to.region;
        let (late, in_time): (Vec<_>, Vec<_>) =
            workers.into_iter().partition(|worker| worker.is_passed_over());
        let Some(worker) = first_for(region, in_time).or_else(|| first_for(region, late)) else {
            return Some(std::future::ready(policy).boxed());
        };
        let process = self.directory().map_or(0, |directory| directory.process());
        let (number, told) = self.questions.open(process, worker.id);
        let asked = worker.ask(WorkerQuestion {
            worker: worker.id,
            question: number,
            account: visitor.account,
            entity: visitor.entity,
            plane: visitor.to.plane,
            pos: visitor.to.pos,
            jumps: visitor.jumps,
        });
        let open = self.questions.guard(number);
        let answer = async move {
            let _open = open;
            let within = if asked { limits.answer_within } else { Duration::ZERO };
            match tokio::time::timeout(within, told).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => {
                    worker.set_answered(false);
                    policy
                }
            }
        };
        Some(answer.boxed())
    }

    fn opens(&self, scene: SceneId, plane: Plane, subject: &str) -> bool {
        self.planes().opens(scene, plane, subject)
    }
}

impl Hub {
    /// A worker of this process answers a question, perhaps of another process.
    pub(super) fn decided(&self, worker: u64, verdict: proto::Verdict) {
        let proto::Verdict { question, allow, reason, plane } = verdict;
        let plane = plane.map(Plane);
        let process = question >> COUNT_BITS;
        let here = self.directory().map_or(0, |directory| directory.process());
        if process == here {
            return self.take_answer(question, worker, answer(allow, plane, reason));
        }
        let message = WorkerMsg::Verdict { question, worker, allow, plane, reason };
        if let Some(links) = self.links.get() {
            // The question ends unanswered.
            let _lost = links.tell_workers(process, message).is_err();
        }
    }

    pub(super) fn take_answer(&self, question: u64, worker: u64, answer: Decided) {
        if let Some(worker) = self.worker(worker) {
            worker.set_answered(true);
        }
        self.questions.answer(question, worker, answer);
    }
}

/// About how many bytes of planes a message has.
const PART_BYTES: usize = 256 << 10;

impl Hub {
    pub(super) fn planes(&self) -> RwLockReadGuard<'_, Planes> {
        self.planes.read()
    }

    /// A worker opens a private plane for these subjects, or closes it (`None`): all processes and all workers of the
    /// scene are told.
    pub(super) fn set_plane(
        &self,
        plane: (SceneId, Plane),
        subjects: Option<Vec<String>>,
    ) -> Result<(), PlaneError> {
        let directory = self.directory();
        let process = directory.as_ref().map_or(0, |directory| directory.process());
        let now = directory.map_or(Duration::ZERO, |directory| directory.uptime());
        let mut planes = self.planes.write();
        planes.note_time(u64::try_from(now.as_micros()).unwrap_or(u64::MAX));
        let news = planes.set(plane, subjects, process)?;
        self.tell_workers(plane.0, &[told(&news)]);
        drop(planes);
        let Some(links) = self.links.get() else { return Ok(()) };
        for process in links.processes() {
            // A process that misses it differs, and is told all.
            let message = WorkerMsg::Planes(vec![news.clone()]);
            let _lost = links.tell_workers(process, message).is_err();
        }
        Ok(())
    }

    /// Takes what another process knows of planes.
    pub(super) fn hear_planes(&self, news: Vec<PlaneNews>) {
        let mut planes = self.planes.write();
        for news in news {
            let (scene, told) = (news.scene, told(&news));
            if planes.merge(news) {
                self.tell_workers(scene, &[told]);
            }
        }
    }

    /// A process that knew other planes twice in a row, although nothing changed, is told all that is known here. A
    /// gateway is not believed about planes: it forgets its own, and is told anew.
    pub(super) fn compare_planes(&self, process: u64, digest: u64) {
        let is_gateway = self.directory().is_some_and(|d| d.process() >= GATEWAY_NUMBERS);
        if is_gateway && process >= GATEWAY_NUMBERS {
            return;
        }
        let planes = self.planes();
        let now = (digest, planes.digest());
        let mut differs = self.differs.lock();
        if now.0 == now.1 {
            differs.remove(&process);
            return;
        }
        let before = differs.insert(process, now);
        drop(differs);
        let Some(links) = self.links.get().filter(|_| before == Some(now)) else { return };
        if is_gateway {
            drop(planes);
            *self.planes.write() = Planes::default();
            return;
        }
        let mut part = (0, Vec::new());
        for news in planes.all() {
            part.0 += 64 + news.subjects.iter().flatten().map(|who| who.len() + 8).sum::<usize>();
            part.1.push(news);
            if part.0 >= PART_BYTES {
                let (_, news) = std::mem::take(&mut part);
                let _lost = links.tell_workers(process, WorkerMsg::Planes(news)).is_err();
            }
        }
        let _lost = links.tell_workers(process, WorkerMsg::Planes(part.1)).is_err();
    }

    /// Tells a worker of all planes that are open: its session begins.
    pub(super) fn tell_planes(&self, worker: &Worker) {
        let planes = self.planes();
        let mut part = (0, Vec::new());
        for (plane, subjects) in planes.open(worker.profile.scene) {
            let told = PrivatePlane { plane: plane.0, open: true, subjects: subjects.to_vec() };
            part.0 += prost::Message::encoded_len(&told);
            part.1.push(told);
            if part.0 >= PART_BYTES {
                push_planes(worker, std::mem::take(&mut part).1);
            }
        }
        if !part.1.is_empty() {
            push_planes(worker, part.1);
        }
    }

    fn tell_workers(&self, scene: SceneId, planes: &[PrivatePlane]) {
        let fits = |w: &Arc<Worker>| w.process().is_none() && w.profile.scene == scene;
        self.all().iter().filter(|w| fits(w)).for_each(|w| push_planes(w, planes.to_vec()));
    }
}

fn told(news: &PlaneNews) -> PrivatePlane {
    let subjects = news.subjects.clone().unwrap_or_default();
    PrivatePlane { plane: news.plane.0, open: news.subjects.is_some(), subjects }
}

fn push_planes(worker: &Worker, planes: Vec<PrivatePlane>) {
    worker.say(encode(response::Message::Planes(proto::Planes { planes })));
}

#[cfg(test)]
mod tests {
    use purview::scene::messages::Destination;
    use purview::scene::region::Followed;
    use purview::scene::{Account, EntityId, Pos, RegionId};

    use super::super::worker::Profile;
    use super::*;

    fn worker(hub: &Hub, id: u64) -> Arc<Worker> {
        let (scene, followed) = (SceneId(0), Followed::Watched);
        let profile = Profile { scene, name: String::new(), answers: true, followed };
        hub.begin(id, profile).unwrap()
    }

    fn hub() -> Hub {
        let limits = Limits {
            ask: AskAbout::Both,
            answer_within: Duration::from_millis(500),
            admits_unanswered: false,
            ..Limits::default()
        };
        Hub::new(limits)
    }

    fn ask(hub: &Hub) -> PendingDecision {
        let (scene, region) = (SceneId(0), RegionId(0));
        let to = Destination { scene, region, plane: Plane(0), pos: Pos::ground(0, 0) };
        let visitor = Visitor {
            account: Account::new("ann", Default::default(), &[]).unwrap(),
            entity: EntityId(1),
            to,
            jumps: false,
        };
        hub.ask(visitor).expect("workers are asked")
    }

    /// Whether the worker has been asked since the last call.
    fn was_asked(worker: &Worker) -> bool {
        std::iter::from_fn(|| worker.take_unsent()).count() > 0
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_hangs_holds_up_one_player_and_is_asked_again_later() {
        let hub = hub();
        let mut workers = [worker(&hub, 7), worker(&hub, 8)];
        let first = hub.choose(SceneId(0), RegionId(0), None).unwrap();
        workers.sort_by_key(|worker| worker.id != first.id);
        let [hung, other] = workers;
        assert!(ask(&hub).await.is_err(), "no answer");
        assert_eq!((was_asked(&hung), was_asked(&other)), (true, false));
        for question in 1..20 {
            let answer = ask(&hub);
            assert_eq!((was_asked(&hung), was_asked(&other)), (false, true));
            hub.take_answer(question, other.id, Ok(Some(Plane(3))));
            assert_eq!(answer.await, Ok(Some(Plane(3))));
        }
        // It is tried again after a while, and at once when it has answered after all.
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(ask(&hub).await.is_err());
        assert_eq!((was_asked(&hung), was_asked(&other)), (true, false));
        hub.take_answer(20, hung.id, Ok(None));
        drop(ask(&hub));
        assert_eq!((was_asked(&hung), was_asked(&other)), (true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_hangs_is_asked_if_there_is_no_other() {
        let hub = hub();
        let hung = worker(&hub, 7);
        for _ in 0..2 {
            assert!(ask(&hub).await.is_err());
            assert!(was_asked(&hung));
        }
    }
}
