//! Idle-gated futures: futures that are rarely ready, in a task with others that often are. A task
//! that is woken polls all its futures, and polling a timer or a channel is not cheap.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::Stream;

/// A future or a stream that is polled only after its own waker was called, and not when its task is woken
/// for another reason.
#[derive(Debug)]
pub struct IdleGated<T> {
    inner: Pin<Box<T>>,
    bell: Arc<Bell>,
    /// The waker that `inner` gets.
    rings: Waker,
    /// The task that the bell wakes.
    task: Option<Waker>,
}

#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    /// Kept from one time to the next.
    task: Mutex<Option<Waker>>,
}

impl Bell {
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        if let Some(task) = &*self.task() {
            task.wake_by_ref();
        }
    }
}

/// Into how many groups periodic work is divided.
const GROUPS: u32 = 4;

/// The next time of periodic work that is done `now`: at most `every` later, and together with the work of
/// many others, so that a process wakes less often. The work is divided into four groups, so that no group
/// delays everything else for long. Both times count from the same origin.
pub fn next_together(now: Duration, every: Duration) -> Duration {
    let turn = (every / GROUPS).max(Duration::from_millis(1)).as_nanos();
    let latest = (now + every).as_nanos().max(now.as_nanos() + turn);
    Duration::from_nanos((latest - latest % turn) as u64)
}

impl<T> IdleGated<T> {
    /// Polls `inner` at its own first poll.
    pub fn new(inner: T) -> IdleGated<T> {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: Mutex::default() });
        IdleGated { inner: Box::pin(inner), rings: bell.clone().into(), bell, task: None }
    }

    /// The future, which is polled again after this.
    pub fn get_mut(&mut self) -> Pin<&mut T> {
        self.bell.rung.store(true, Ordering::Release);
        self.inner.as_mut()
    }

    /// Whether `inner` is to be polled.
    fn is_due(&mut self, cx: &Context<'_>) -> bool {
        if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            self.task = Some(cx.waker().clone());
            *self.bell.task() = Some(cx.waker().clone());
        }
        // A wake between this and the next poll comes after the event that it announces.
        self.bell.rung.load(Ordering::Relaxed) && self.bell.rung.swap(false, Ordering::Acquire)
    }

    /// After `inner` was ready it may be ready again.
    fn again<R>(&self, done: Poll<R>) -> Poll<R> {
        if done.is_ready() {
            self.bell.rung.store(true, Ordering::Release);
        }
        done
    }
}

impl<T: Future> Future for IdleGated<T> {
    type Output = T::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        if !self.is_due(cx) {
            return Poll::Pending;
        }
        let IdleGated { inner, rings, .. } = &mut *self;
        let done = inner.as_mut().poll(&mut Context::from_waker(rings));
        self.again(done)
    }
}

impl<T: Stream> Stream for IdleGated<T> {
    type Item = T::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T::Item>> {
        if !self.is_due(cx) {
            return Poll::Pending;
        }
        let IdleGated { inner, rings, .. } = &mut *self;
        let done = inner.as_mut().poll_next(&mut Context::from_waker(rings));
        self.again(done)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicUsize;

    use futures::channel::mpsc;
    use futures::{StreamExt, poll};

    use super::*;

    /// Counts how often it is looked at.
    fn counted<'a, T: Stream + Unpin + 'a>(
        mut inner: T,
        polls: &'a Cell<usize>,
    ) -> impl Stream<Item = T::Item> + 'a {
        futures::stream::poll_fn(move |cx| {
            polls.set(polls.get() + 1);
            inner.poll_next_unpin(cx)
        })
    }

    #[tokio::test]
    async fn it_is_polled_only_after_its_waker_was_called() {
        let (said, received) = mpsc::unbounded();
        let polls = Cell::new(0);
        let mut idle_gated = IdleGated::new(counted(received, &polls));
        for _ in 0..3 {
            assert_eq!(poll!(idle_gated.next()), Poll::Pending);
        }
        assert_eq!(polls.get(), 1, "nothing has happened");
        said.unbounded_send(1).unwrap();
        said.unbounded_send(2).unwrap();
        assert_eq!(poll!(idle_gated.next()), Poll::Ready(Some(1)));
        assert_eq!(poll!(idle_gated.next()), Poll::Ready(Some(2)), "there may be more");
        assert_eq!(poll!(idle_gated.next()), Poll::Pending);
        let before = polls.get();
        idle_gated.get_mut();
        assert_eq!(poll!(idle_gated.next()), Poll::Pending);
        assert_eq!(polls.get(), before + 1, "something was done to it");
        drop(said);
        assert_eq!(poll!(idle_gated.next()), Poll::Ready(None));
    }

    /// A waker that counts.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_same_task_is_woken_again_and_again() {
        let (said, received) = mpsc::unbounded();
        let mut idle_gated = IdleGated::new(received);
        let count = Arc::<Count>::default();
        let waker = count.clone().into();
        for round in 1..=3 {
            while idle_gated.poll_next_unpin(&mut Context::from_waker(&waker)).is_ready() {}
            said.unbounded_send(()).unwrap();
            assert_eq!(count.0.load(Ordering::Relaxed), round);
        }
    }

    #[test]
    fn the_task_that_polled_last_is_woken_each_time() {
        let (said, received) = mpsc::unbounded();
        let mut idle_gated = IdleGated::new(received);
        let counts: [Arc<Count>; 2] = Default::default();
        for round in 1..=3 {
            for count in &counts {
                let waker = count.clone().into();
                let mut cx = Context::from_waker(&waker);
                while idle_gated.poll_next_unpin(&mut cx).is_ready() {}
            }
            said.unbounded_send(()).unwrap();
            let woken = counts.each_ref().map(|count| count.0.load(Ordering::Relaxed));
            assert_eq!(woken, [0, round]);
        }
    }

    #[test]
    fn periodic_work_of_many_is_done_at_few_times_and_never_late() {
        let ms = Duration::from_millis;
        let every = ms(250);
        let mut times = BTreeSet::new();
        for begins in 0..1_000 {
            let mut now = ms(begins);
            while now < ms(3_000) {
                let next = next_together(now, every);
                assert!(next > now && next <= now + every, "{next:?} after {now:?}");
                assert!(next + every / 4 > now + every, "{next:?} after {now:?}");
                // A timer tells milliseconds apart, and may be late.
                now = ms(next.as_nanos().div_ceil(1_000_000) as u64);
                times.insert(now);
            }
        }
        assert!(times.len() <= 4 * 14, "{} times in three seconds", times.len());
        for every in [0, 1, 3] {
            assert!(next_together(ms(7), ms(every)) > ms(7), "time goes on");
        }
    }
}
