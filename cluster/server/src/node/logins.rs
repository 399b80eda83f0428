//! Sessions by their subjects over several gateways. Each process tells every gateway its claims,
//! in their order and again until they are answered; the answer has the claims there that stand
//! against them. So each pair of claims meets at least once, in any order of joins. Operators'
//! kicks come through the store, also to processes that start later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use parking_lot::RwLock;
use purview::actor::logins::Logins;
use purview::scene::names::is_name;
use purview::wire::peer::query::{Answer, Question};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};

use super::orders::{OrderError, Orders};
use super::values::read;
use crate::executor::Executor;
use crate::gateway::token::MAX_SUBJECT;
use crate::logins::Subjects;
use crate::peer::Links;
use crate::storage::{Put, Revision, View};

/// Time between two checks of gateways and kicks, and between two attempts to tell a process.
const EVERY: Duration = Duration::from_secs(1);

/// Most claims of one question.
const BATCH: usize = 512;

/// The value that lists kicked subjects.
const KICKS: &str = "kicks";

/// How long a kick stays there at least, for every process to see it, milliseconds.
const STAYS_MS: u64 = 5 * 60_000;

/// Most kicks that are kept at once.
const MAX_KICKS: usize = 2_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kicks {
    last: u64,
    kicks: Vec<Kick>,
}

/// An operator's order to end the sessions of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kick {
    number: u64,
    subject: String,
    /// When, milliseconds since 1970.
    at_ms: u64,
    /// Until when it is barred, milliseconds since 1970.
    until_ms: u64,
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Kicks {
    /// One more, at this time of day; `bar` as [`Orders::kick`] has it. False when too many count.
    fn add(&mut self, subject: &str, bar: Option<Duration>, now_ms: u64) -> bool {
        let before = self.kicks.iter().find(|kick| kick.subject == subject);
        let before = before.map_or(0, |kick| kick.until_ms);
        let until_ms = bar.map_or(before, |bar| now_ms.saturating_add(ms(bar)));
        self.kicks.retain(|kick| {
            let counts = kick.until_ms > now_ms || kick.at_ms.saturating_add(STAYS_MS) > now_ms;
            counts && kick.subject != subject
        });
        if self.kicks.len() >= MAX_KICKS {
            return false;
        }
        self.last += 1;
        let (number, subject) = (self.last, subject.to_owned());
        self.kicks.push(Kick { number, subject, at_ms: now_ms, until_ms });
        true
    }
}

impl Orders {
    /// Ends all sessions of a subject in the whole cluster, and lets none begin for so long. `None`: an earlier bar
    /// stays as it is; zero: it ends.
    pub async fn kick(&self, subject: &str, bar: Option<Duration>) -> Result<(), OrderError> {
        if !is_subject(subject) {
            return Err(OrderError::NoSubject(subject.len()));
        }
        loop {
            let found = self.store().get(KICKS).await?;
            let mut kicks: Kicks = read(found.as_ref());
            if !kicks.add(subject, bar, ms(self.time_of_day())) {
                return Err(OrderError::TooManyKicks(MAX_KICKS));
            }
            // Plain data has a text.
            let data = Bytes::from(serde_json::to_vec(&kicks).unwrap_or_default());
            let revision = found.map(|found| found.revision);
            if let Put::Done(_) = self.store().put_if(KICKS, revision, data).await? {
                return Ok(());
            }
        }
    }
}

/// Whether a text may be a token's `sub`.
fn is_subject(text: &str) -> bool {
    is_name(text, MAX_SUBJECT)
}

#[derive(Debug, Default)]
struct Heeded(Option<u64>);

impl Heeded {
    /// Heeds what is new; a process that starts heeds only that subjects are barred.
    fn heed(&mut self, kicks: &Kicks, now_ms: u64, subjects: &Subjects) {
        let new = |kick: &&Kick| match self.0 {
            Some(seen) => kick.number > seen,
            None => kick.until_ms > now_ms,
        };
        for kick in kicks.kicks.iter().filter(new) {
            let left = Duration::from_millis(kick.until_ms.saturating_sub(now_ms));
            let ended = subjects.kick(&kick.subject, Some(left));
            tracing::info!(subject = kick.subject, ?left, ended, "sessions were ended by an order");
        }
        self.0 = Some(kicks.last);
    }
}

type PendingAnswer = BoxFuture<'static, (u64, u64, Option<Answer>)>;

/// Which claims each process knows.
struct Telling {
    subjects: Subjects,
    links: Links,
    /// Other gateways, and up to which number each knows the claims here.
    others: BTreeMap<u64, u64>,
    /// Those that are being asked, or did not answer of late.
    busy: BTreeSet<u64>,
    late: BTreeSet<u64>,
    asked: FuturesUnordered<PendingAnswer>,
}

impl Telling {
    fn refresh(&mut self, view: &View) {
        let me = self.links.process();
        let others = view.nodes.values().filter(|node| node.gateway && node.process != me);
        let known = |process| (process, self.others.get(&process).copied().unwrap_or(0));
        self.others = others.map(|node| known(node.process)).collect();
        self.late.clear();
    }

    fn answered(&mut self, (process, upto, answer): (u64, u64, Option<Answer>)) {
        self.busy.remove(&process);
        let Some(answer) = answer else {
            self.late.insert(process);
            return;
        };
        if let Some(known) = self.others.get_mut(&process) {
            *known = upto.max(*known);
        }
        // Those that stand there against claims here.
        self.subjects.meet(&answer.claims);
    }

    /// Tells each process the claims that it does not know.
    fn tell(&mut self) {
        let last = self.subjects.last();
        let ready = |process: &u64| !self.busy.contains(process) && !self.late.contains(process);
        let mut asks = Vec::new();
        for (process, known) in self.others.iter_mut().filter(|(process, _)| ready(process)) {
            let claims = self.subjects.claims_after(*known, BATCH);
            let upto = match claims.last() {
                Some((number, _)) if claims.len() == BATCH => *number,
                Some((number, _)) => last.max(*number),
                None => {
                    *known = last.max(*known);
                    continue;
                }
            };
            let claims = claims.into_iter().map(|(_, claim)| claim).collect();
            asks.push((*process, upto, Question::Claims(claims)));
        }
        for (process, upto, question) in asks {
            self.busy.insert(process);
            let links = self.links.clone();
            let ask = async move { (process, upto, links.ask(process, question).await) };
            self.asked.push(ask.boxed());
        }
        self.subjects.set_told(self.others.values().min().copied());
    }
}

/// Tells other gateways the claims of this one, and heeds kicks, for ever.
pub(super) async fn follow(
    subjects: Subjects,
    links: Links,
    views: Arc<RwLock<View>>,
    executor: Executor,
) {
    let (others, busy, late, asked) = Default::default();
    let mut telling = Telling { subjects, links, others, busy, late, asked };
    let (mut heeded, mut due) = (Heeded::default(), Instant::now());
    loop {
        tokio::select! {
            biased;
            Some(told) = telling.asked.next() => telling.answered(told),
            () = telling.subjects.news() => {}
            () = sleep_until(due) => {
                due = Instant::now() + EVERY;
                let view = views.read();
                if view.revision > Revision(0) {
                    let kicks = read(view.values.get(KICKS));
                    heeded.heed(&kicks, ms(executor.time_of_day()), &telling.subjects);
                }
                telling.refresh(&view);
            }
        }
        telling.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_stays_while_its_subject_is_barred_and_until_all_have_heard_of_it() {
        let mut kicks = Kicks::default();
        let hour = Duration::from_secs(3_600);
        assert!(kicks.add("ada", Some(hour), 1_000));
        assert!(kicks.add("bob", None, 2_000));
        // The bar stays where the next one says nothing of it, and ends where it says so.
        assert!(kicks.add("ada", None, 3_000));
        let until = |kicks: &Kicks| {
            let of = |kick: &Kick| (kick.subject.clone(), kick.until_ms);
            kicks.kicks.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(until(&kicks), [("bob".into(), 0), ("ada".into(), 3_601_000)]);
        assert!(kicks.add("cid", Some(Duration::ZERO), 400_000));
        assert_eq!(until(&kicks), [("ada".into(), 3_601_000), ("cid".into(), 400_000)]);
        assert!(kicks.add("ada", Some(Duration::ZERO), 500_000));
        assert_eq!(until(&kicks).last(), Some(&("ada".into(), 500_000)));
        assert_eq!(kicks.last, 5);
        for i in kicks.kicks.len()..MAX_KICKS {
            assert!(kicks.add(&format!("somebody {i}"), Some(hour), 500_000));
        }
        let before = kicks.clone();
        assert!(!kicks.add("one more", Some(hour), 500_000));
        assert_eq!(kicks.kicks.len(), before.kicks.len());
        assert!(serde_json::to_vec(&kicks).unwrap().len() < 512 << 10);
        assert!(kicks.add("one more", Some(hour), 5_000_000), "the others are over");
    }

    #[test]
    fn a_subject_is_short_and_printable() {
        assert!(is_subject("ada") && is_subject(&"s".repeat(MAX_SUBJECT)));
        assert!(!is_subject("") && !is_subject("a\tb") && !is_subject(&"s".repeat(129)));
    }
}
