//! Questions between processes. A question travels on the channel for regions; it is answered by a
//! task of its own, so that a slow answer delays no region. Consoles use the links and not each
//! other's HTTP port, because consoles listen on loopback, and links reach every member and
//! authenticate it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use purview::scene::messages::CommandResult;
use purview::wire::peer::PeerMsg;
use purview::wire::peer::query::{Answer, Question};
use tokio::sync::Semaphore;

use super::workers::TakeWorkerMsg;
use super::{Kind, Links};
use crate::questions::Questions;

const ANSWER_LIMIT: Duration = Duration::from_millis(2_500);

/// Most questions of peers that are answered at the same time; further ones get no answer.
const AT_ONCE: usize = 4;

pub type Respond = Arc<dyn Fn(Question) -> BoxFuture<'static, Answer> + Send + Sync>;

pub(super) struct Enquiries {
    open: Arc<Questions<Answer>>,
    respond: OnceLock<Respond>,
    pub(super) workers: OnceLock<Arc<dyn TakeWorkerMsg>>,
    permits: Arc<Semaphore>,
}

impl Default for Enquiries {
    fn default() -> Self {
        let (open, respond, workers) = Default::default();
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        Enquiries { open, respond, workers, permits }
    }
}

impl std::fmt::Debug for Enquiries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enquiries").field("open", &self.open).finish_non_exhaustive()
    }
}

impl Links {
    /// Sets the responder; before that no question is answered.
    pub fn respond_with(&self, respond: Respond) {
        if self.0.enquiries.respond.set(respond).is_err() {
            tracing::error!("the responder for questions of peers is set already");
        }
    }

    /// Asks a process; `None` if it does not answer within 2.5 s.
    pub async fn ask(&self, process: u64, question: Question) -> Option<Answer> {
        let questions = &self.0.enquiries.open;
        let (ticket, told) = questions.open(0, process);
        let _open = questions.guard(ticket);
        let ask = PeerMsg::Ask { ticket, question };
        self.push(process, Kind::Regions, &ask).ok()?;
        tokio::time::timeout(ANSWER_LIMIT, told).await.ok()?.ok()
    }

    pub(super) fn asked(&self, process: u64, ticket: u64, question: Question) {
        let enquiries = &self.0.enquiries;
        let Some(respond) = enquiries.respond.get().cloned() else { return };
        let turn = match question {
            // Answered without the limit: a late clock answer is inaccurate, and sessions wait for
            // the answer about claims.
            Question::Clock | Question::Claims(_) => None,
            Question::Players
            | Question::Entity(_)
            | Question::Lines
            | Question::Loads
            | Question::Balance => {
                let Ok(turn) = enquiries.permits.clone().try_acquire_owned() else {
                    tracing::debug!(process, "too many questions at once");
                    return;
                };
                Some(turn)
            }
        };
        let links = self.clone();
        self.0.executor.spawn(async move {
            let answer = respond(question).await;
            let told = PeerMsg::Answered { ticket, answer };
            // The peer asks again if it still needs the answer.
            let _lost = links.push(process, Kind::Regions, &told).is_err();
            drop(turn);
        });
    }

    pub(super) fn told(&self, process: u64, ticket: u64, answer: Answer) {
        self.0.enquiries.open.answer(ticket, process, answer);
    }

    /// Tells a process what has become of a command of one of its calls. The call ends unanswered if the channel has
    /// no room.
    pub(crate) fn tell_result(&self, process: u64, ended: CommandResult) {
        let _lost = self.push(process, Kind::Regions, &PeerMsg::CommandResult(ended)).is_err();
    }
}
