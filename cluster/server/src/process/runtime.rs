//! The runtime on which the links and the store's client of a process run, beside its regions and sessions.

use tokio::runtime::Runtime;

use crate::executor::Executor;

/// Where a process's tasks run. Its runtime, if it has one of its own, may be dropped where tasks run.
#[derive(Debug)]
pub(super) struct TaskRuntime {
    runtime: Option<Runtime>,
    executor: Executor,
}

impl TaskRuntime {
    pub(super) fn new() -> std::io::Result<TaskRuntime> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let built = builder.worker_threads(2).thread_name("purview-links").enable_all().build()?;
        Ok(TaskRuntime::of(built))
    }

    pub(super) fn of(runtime: Runtime) -> TaskRuntime {
        let executor = runtime.handle().clone().into();
        TaskRuntime { runtime: Some(runtime), executor }
    }

    pub(super) fn at(executor: Executor) -> TaskRuntime {
        TaskRuntime { runtime: None, executor }
    }

    pub(super) fn executor(&self) -> &Executor {
        &self.executor
    }
}

impl Drop for TaskRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
