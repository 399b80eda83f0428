//! Questions to workers that are not answered yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use purview::actor::admission::Reason;
use purview::scene::Plane;
use tokio::sync::oneshot;

/// Bits of a question's number that count; those above are the process that asks.
pub const COUNT_BITS: u32 = 32;

/// What a worker answers: the player may come, perhaps into another plane, or why it may not.
pub type Decided = Result<Option<Plane>, Reason>;

type Waiting = HashMap<u64, (u64, oneshot::Sender<Decided>)>;

/// Questions that are not answered yet.
#[derive(Debug, Default)]
pub struct Questions {
    asked: AtomicU64,
    /// By number: the worker that is asked, and who waits.
    waiting: Mutex<Waiting>,
}

impl Questions {
    pub fn open(&self, process: u64, worker: u64) -> (u64, oneshot::Receiver<Decided>) {
        let count = self.asked.fetch_add(1, Relaxed) & ((1 << COUNT_BITS) - 1);
        let number = process << COUNT_BITS | count;
        let (tell, told) = oneshot::channel();
        self.waiting.lock().insert(number, (worker, tell));
        (number, told)
    }

    /// The question is forgotten when the guard is dropped: nobody waits for the answer any more.
    pub fn guard(self: &Arc<Self>, number: u64) -> OpenQuestion {
        OpenQuestion { of: Arc::clone(self), number }
    }

    /// Only the worker that was asked may answer.
    pub fn answer(&self, number: u64, worker: u64, answer: Decided) {
        let mut waiting = self.waiting.lock();
        if waiting.get(&number).is_some_and(|(asked, _)| *asked == worker)
            && let Some((_, tell)) = waiting.remove(&number)
        {
            // Nobody may wait any more.
            let _waits = tell.send(answer).is_ok();
        }
    }
}

#[derive(Debug)]
pub struct OpenQuestion {
    of: Arc<Questions>,
    number: u64,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.of.waiting.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_worker_that_was_asked_answers_and_once() {
        let questions = Questions::default();
        let (number, mut told) = questions.open(5, 77);
        assert_eq!(number >> COUNT_BITS, 5);
        questions.answer(number, 78, Err("no".into()));
        assert!(told.try_recv().is_err());
        questions.answer(number, 77, Ok(None));
        questions.answer(number, 77, Err("no".into()));
        assert_eq!(told.try_recv(), Ok(Ok(None)));
        assert!(questions.waiting.lock().is_empty());
    }

    #[test]
    fn a_question_whose_player_is_gone_is_forgotten() {
        let questions = Arc::new(Questions::default());
        let (number, told) = questions.open(5, 77);
        let open = questions.guard(number);
        drop((told, open));
        assert!(questions.waiting.lock().is_empty());
    }
}
