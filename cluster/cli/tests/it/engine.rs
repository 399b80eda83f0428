//! One contract for every engine. Leases: the store of one process, the simulated one, and etcd. Checkpoints: redb,
//! the simulated store, and PostgreSQL. Each test has its own real server.

pub mod bench;
mod checkpoint_store;
mod checkpoints;
mod etcd;
mod leader;
mod ownership;
mod postgres;
mod servers;
mod silence;
mod values;
mod watching;
mod whole;

/// Makes a test of all cases for each engine. Each case has an empty store of its own; all share one server.
macro_rules! over_each {
    ($bench:ident: $($engine:ident),+: $cases:tt) => {
        $( over_each!(@ $bench, $engine, $cases); )+
    };
    (@ $bench:ident, $engine:ident, { $($case:ident),+ $(,)? }) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $engine() {
            let mut bench = $bench::$engine().await;
            $(
                println!("{}", stringify!($case));
                bench.renew();
                $case(&mut bench).await;
            )+
        }
    };
}
pub(crate) use over_each;
