//! Where the links and the store's client of a process live, beside its regions and sessions.

use tokio::runtime::Runtime;

use crate::executor::Home;

/// Where a process's tasks run; its runtime, if it has one of its own, may be dropped where tasks run.
#[derive(Debug)]
pub(super) struct Background {
    runtime: Option<Runtime>,
    pub(super) home: Home,
}

impl Background {
    pub(super) fn new() -> std::io::Result<Background> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let built = builder.worker_threads(2).thread_name("purview-links").enable_all().build()?;
        Ok(Background::of(built))
    }

    pub(super) fn of(runtime: Runtime) -> Background {
        let home = runtime.handle().clone().into();
        Background { runtime: Some(runtime), home }
    }

    /// Where somebody else's tasks run, too.
    pub(super) fn at(home: Home) -> Background {
        Background { runtime: None, home }
    }

    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.home.spawn(work)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs something where the store's client and the links live.
pub(super) async fn on<T: Send + 'static>(
    runtime: &Background,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match runtime.spawn(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
