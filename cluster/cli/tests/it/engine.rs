//! One contract for every engine: what nodes agree on, over the store of one process, as it is and simulated, and over etcd;
//! what is kept, over redb, over the simulated shelf and over PostgreSQL. The servers are real ones, each test has its own.

mod bench;
mod checkpoints;
mod etcd;
mod leader;
mod ownership;
mod postgres;
mod proxy;
mod servers;
mod shelf;
mod silence;
mod values;
mod watching;
mod whole;

/// Each case as a test over each engine.
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
