//! Runs one future on a paused Tokio runtime, whose virtual clock advances to the next timer whenever no task has
//! work.
//!
//! Such a runtime advances its clock when it parks, unless it was woken since it parked last: then it looks at its
//! timers and parks once more. The blocked-on future and its tasks would wake the runtime whenever they are woken. So
//! the future is polled here as soon as the runtime has unparked, and the runtime is woken for it only while it
//! works. That halves the number of looks at timers and at the machine's clock, and keeps the order of everything.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use purview::clock;
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
    /// The runtime looks at its timers.
    static PARKED: Cell<bool> = const { Cell::new(false) };
    /// The future was woken meanwhile.
    static DUE: Cell<bool> = const { Cell::new(false) };
}

struct Work {
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Waker,
}

struct Bell {
    runtime: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match PARKED.get() {
            true => DUE.set(true),
            false => self.runtime.wake_by_ref(),
        }
    }
}

fn read() {
    let Some(mut work) = WORK.take() else { return };
    match work.future.as_mut().poll(&mut Context::from_waker(&work.waker)) {
        Poll::Ready(()) => work.waker.wake(),
        Poll::Pending => WORK.set(Some(work)),
    }
}

/// A paused runtime for [`block_on`].
pub(super) fn runtime() -> std::io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    builder.on_thread_park(|| PARKED.set(true));
    builder.on_thread_unpark(|| {
        PARKED.set(false);
        // The clock has advanced.
        clock::was_set();
        if DUE.take() {
            read();
        }
    });
    builder.build()
}

/// Runs a future to its end.
pub(super) fn block_on<T: 'static>(
    runtime: &Runtime,
    future: impl Future<Output = T> + 'static,
) -> T {
    let done = Rc::new(Cell::new(None));
    let put = done.clone();
    let mut begins = Some(async move { put.set(Some(future.await)) });
    runtime.block_on(poll_fn(|cx| {
        if let Some(future) = begins.take() {
            let waker = Arc::new(Bell { runtime: cx.waker().clone() }).into();
            WORK.set(Some(Work { future: Box::pin(future), waker }));
        }
        read();
        done.take().map_or(Poll::Pending, Poll::Ready)
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::task::{LocalSet, spawn_local};
    use tokio::time::{Instant, sleep};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Runs a future in a task set. Returns its result and how often the runtime parked.
    fn run<T: 'static>(future: impl Future<Output = T> + 'static) -> (T, u64) {
        let runtime = runtime().unwrap();
        let done = block_on(&runtime, async move { LocalSet::new().run_until(future).await });
        (done, runtime.metrics().worker_park_count(0))
    }

    #[test]
    fn the_clock_advances_from_timer_to_timer_with_one_park_each() {
        let (at, parks) = run(async {
            let began = Instant::now();
            let mut at = Vec::new();
            for ms in [5, 1, 20] {
                sleep(MS * ms).await;
                at.push(began.elapsed());
            }
            at
        });
        assert_eq!(at, [MS * 5, MS * 6, MS * 26]);
        // The first poll of the future counts as a wake-up.
        assert!(parks <= 3 + 1, "{parks} parks for 3 timers");
    }

    #[test]
    fn the_clock_does_not_advance_before_every_woken_task_has_run() {
        let (at, _) = run(async {
            let began = Instant::now();
            let (tell, told) = oneshot::channel();
            // A task of the runtime, outside of the set.
            tokio::spawn(async move {
                sleep(MS * 5).await;
                tell.send(()).unwrap();
            });
            let later = spawn_local(async move {
                sleep(MS * 6).await;
                began.elapsed()
            });
            told.await.unwrap();
            (began.elapsed(), later.await.unwrap())
        });
        assert_eq!(at, (MS * 5, MS * 6));
    }

    #[test]
    fn a_future_without_timers_completes_at_once() {
        assert_eq!(run(async { 7 }).0, 7);
    }
}
