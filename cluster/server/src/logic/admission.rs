//! Workers decide whether players may come: questions to them, and planes that they have opened.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use purview::actor::admission::{Admission, Answer, Visitor};
use purview::scene::{Plane, SceneId};
use purview::wire::peer::WorkerMsg;

use super::events::position;
use super::hub::{Hub, Limits};
use super::outbox::encode;
use super::proto::{self, Question, response};
use super::questions::COUNT_BITS;
use super::worker::{Presence, Worker};
use crate::config::AskAbout;

fn is_asked(limits: &Limits, visitor: &Visitor) -> bool {
    match limits.ask {
        AskAbout::Nobody => false,
        AskAbout::Joins => !visitor.jumps,
        AskAbout::Jumps => visitor.jumps,
        AskAbout::Both => true,
    }
}

impl Admission for Hub {
    fn ask(&self, visitor: Visitor) -> Option<Answer> {
        let limits = self.limits;
        if !is_asked(&limits, &visitor) {
            return None;
        }
        let policy = match limits.admits_unanswered {
            true => Ok(()),
            false => Err("the game does not answer; try again".to_owned()),
        };
        let fits = |worker: &Arc<Worker>| {
            let profile = &worker.profile;
            profile.answers && profile.scene == visitor.to.scene && !worker.is_late()
        };
        let here = |worker: &Arc<Worker>| worker.presence() == Presence::Here;
        let mut workers = self.all().into_iter().filter(|worker| fits(worker) && here(worker));
        let Some(worker) = workers.next() else {
            return Some(std::future::ready(policy).boxed());
        };
        let process = self.directory().map_or(0, |directory| directory.process());
        let (question, told) = self.questions.open(process, worker.id);
        let question = Question {
            question,
            subject: visitor.subject,
            entity: visitor.entity.0,
            plane: visitor.to.plane.0,
            position: position(visitor.to.pos),
            jumps: visitor.jumps,
        };
        let number = question.question;
        let asked = worker.push(&encode(response::Message::Question(question)));
        let questions = self.questions.clone();
        let answer = async move {
            let within = if asked { limits.answer_within } else { Duration::ZERO };
            let told = tokio::time::timeout(within, told).await;
            questions.forget(number);
            match told {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => policy,
            }
        };
        Some(answer.boxed())
    }

    fn opens(&self, scene: SceneId, plane: Plane, subject: &str) -> bool {
        let all = self.all();
        let mut of_scene = all.iter().filter(|worker| worker.profile.scene == scene);
        of_scene.any(|worker| worker.opens(plane, subject))
    }
}

impl Hub {
    /// A worker of this process answers a question, perhaps of another process.
    pub(super) fn answered(&self, worker: u64, answer: proto::Answer) {
        let proto::Answer { question, allow, reason } = answer;
        let process = question >> COUNT_BITS;
        let here = self.directory().map_or(0, |directory| directory.process());
        if process == here {
            return self.take_answer(question, worker, allow, reason);
        }
        let message = WorkerMsg::Answer { question, worker, allow, reason };
        if let Some(links) = self.links.get() {
            // The question ends unanswered.
            let _lost = links.tell_workers(process, message).is_err();
        }
    }

    /// A question of this process is answered.
    pub(super) fn take_answer(&self, question: u64, worker: u64, allow: bool, reason: String) {
        let answer = if allow { Ok(()) } else { Err(reason) };
        self.questions.answer(question, worker, answer);
    }
}
