//! Commands that a program gives by a call: the region of the entity applies each of them once or refuses it, and the
//! call resolves with the result.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use actix_rt::time::timeout;
use futures::channel::oneshot;
use rustc_hash::FxHashMap;

use super::process::TellCaller;
use super::{Directory, NotSent};
use crate::actor::address::ToRegion;
use crate::scene::RegionId;
use crate::scene::messages::{Asker, Command, CommandError, CommandId, CommandResult, Input};

/// How long a call waits for its result.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Why a command was not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// A region has refused it. Nothing has changed, except as [`CommandError::Unanswered`] says.
    #[error(transparent)]
    Refused(#[from] CommandError),
    /// It is not known where the region is, or too much waits for it. Nothing has changed; the call may be repeated.
    #[error("region {0} cannot be told now; try again")]
    OutOfReach(RegionId),
    /// The region is no more. Nothing has changed.
    #[error("there is no region {0} any more")]
    Gone(RegionId),
}

type Waiting = FxHashMap<u64, oneshot::Sender<Result<(), CommandError>>>;

/// Calls whose results have not come.
#[derive(Debug, Default)]
pub(super) struct Calls {
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    tell: OnceLock<Arc<dyn TellCaller>>,
}

impl Calls {
    /// Those of a process of a cluster, which begins at this time of the cluster's clock: results of calls of an
    /// earlier process of the same number find nobody.
    pub(super) fn since(clock: Duration) -> Calls {
        Calls { next: AtomicU64::new(clock.as_micros() as u64), ..Calls::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits; whoever drops it waits no more.
struct Call<'a> {
    of: &'a Calls,
    number: u64,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.of.waiting().remove(&self.number);
    }
}

impl Directory {
    /// Gives a command to a region, which passes it on if the command's entity lives in another one. Resolves when
    /// the command was applied.
    ///
    /// # Errors
    /// [`CallError`], which says whether anything has changed.
    pub async fn command(&self, region: RegionId, command: Command) -> Result<(), CallError> {
        let number = self.calls.next.fetch_add(1, Relaxed);
        let (tell, told) = oneshot::channel();
        self.calls.waiting().insert(number, tell);
        let call = Call { of: &self.calls, number };
        let id = CommandId { from: Asker::Process(self.process), number };
        let input = Input::command(id, command);
        self.send(region, ToRegion { input, client: None }).map_err(|e| match e {
            NotSent::Full(_) | NotSent::Nowhere(_) => CallError::OutOfReach(region),
            NotSent::Closed(_) | NotSent::Gone(_) => CallError::Gone(region),
        })?;
        let result = timeout(ANSWER_LIMIT, told).await;
        drop(call);
        match result {
            Ok(Ok(result)) => result.map_err(CallError::Refused),
            Ok(Err(_)) | Err(_) => Err(CommandError::Unanswered.into()),
        }
    }

    /// What has become of a command of a call in this process.
    pub fn answered(&self, ended: CommandResult) {
        // A call that has given up waits no more.
        let call = self.calls.waiting().remove(&ended.id.number);
        let _waits = call.is_some_and(|call| call.send(ended.result).is_ok());
    }

    /// Sets who carries results to other processes; only the first call counts.
    pub fn tell_callers_by(&self, tell: Arc<dyn TellCaller>) {
        self.calls.tell.get_or_init(|| tell);
    }

    /// Tells the process that has given a command what has become of it.
    pub(in crate::actor) fn tell_caller(&self, process: u64, ended: CommandResult) {
        match process == self.process {
            true => self.answered(ended),
            false => {
                if let Some(tell) = self.calls.tell.get() {
                    tell.tell(process, ended);
                }
            }
        }
    }
}
