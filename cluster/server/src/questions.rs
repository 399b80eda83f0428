//! Questions to peers and to workers that are not answered yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Bits of a question's number that count; those above are the process that asks.
pub const COUNT_BITS: u32 = 32;

#[derive(Debug)]
pub struct Questions<A> {
    asked: AtomicU64,
    /// By number: whose answer counts, and the end at which it is waited for.
    waiting: Mutex<HashMap<u64, (u64, oneshot::Sender<A>)>>,
}

impl<A> Default for Questions<A> {
    fn default() -> Questions<A> {
        Questions { asked: AtomicU64::new(0), waiting: Mutex::default() }
    }
}

impl<A> Questions<A> {
    /// Opens a question to a peer or a worker. `process` is the upper part of the question's number.
    pub fn open(&self, process: u64, asked: u64) -> (u64, oneshot::Receiver<A>) {
        let count = self.asked.fetch_add(1, Relaxed) & ((1 << COUNT_BITS) - 1);
        let number = process << COUNT_BITS | count;
        let (tell, told) = oneshot::channel();
        self.waiting.lock().insert(number, (asked, tell));
        (number, told)
    }

    /// The question is forgotten when the guard is dropped: nobody waits for the answer any more.
    pub fn guard(self: &Arc<Self>, number: u64) -> OpenQuestion<A> {
        OpenQuestion { of: Arc::clone(self), number }
    }

    /// Only the peer or the worker that was asked may answer.
    pub fn answer(&self, number: u64, by: u64, answer: A) {
        let mut waiting = self.waiting.lock();
        if waiting.get(&number).is_some_and(|(asked, _)| *asked == by)
            && let Some((_, tell)) = waiting.remove(&number)
        {
            // Nobody may wait any more.
            let _waits = tell.send(answer).is_ok();
        }
    }
}

#[derive(Debug)]
pub struct OpenQuestion<A> {
    of: Arc<Questions<A>>,
    number: u64,
}

impl<A> Drop for OpenQuestion<A> {
    fn drop(&mut self) {
        self.of.waiting.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_worker_that_was_asked_answers_and_once() {
        let questions = Questions::<u8>::default();
        let (number, mut told) = questions.open(5, 77);
        assert_eq!(number >> COUNT_BITS, 5);
        questions.answer(number, 78, 1);
        assert!(told.try_recv().is_err());
        questions.answer(number, 77, 2);
        questions.answer(number, 77, 3);
        assert_eq!(told.try_recv(), Ok(2));
        assert!(questions.waiting.lock().is_empty());
    }

    #[test]
    fn a_question_whose_player_is_gone_is_forgotten() {
        let questions = Arc::new(Questions::<u8>::default());
        let (number, told) = questions.open(5, 77);
        let open = questions.guard(number);
        drop((told, open));
        assert!(questions.waiting.lock().is_empty());
    }
}
