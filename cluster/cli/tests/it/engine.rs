//! One contract for every engine. Leases: the store of one process, the simulated one, and etcd. Checkpoints: redb,
//! the simulated store, and PostgreSQL. Each test has its own real server.

pub mod bench;
mod checkpoint_store;
mod checkpoints;
mod etcd;
mod leader;
mod ownership;
mod postgres;
mod proxy;
mod servers;
mod silence;
mod values;
mod watching;
mod whole;

/// Makes a test of each case for each engine.
macro_rules! over_each {
    ($bench:ident: $($engine:ident),+: $cases:tt) => {
        $( over_each!(@ $bench, $engine, $cases); )+
    };
    (@ $bench:ident, $engine:ident, { $($case:ident),+ $(,)? }) => {
        mod $engine {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(super::$bench::$engine().await).await;
                }
            )+
        }
    };
}
pub(crate) use over_each;
