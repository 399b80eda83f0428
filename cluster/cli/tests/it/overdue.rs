//! A node whose checkpoint store is away for longer than recovery assumes: metrics and tools show it, and play goes
//! on.

use std::sync::Arc;

use purview::scene::Epoch;
use purview_lab::sim::store::{CheckpointFaults, Memory};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::http;
use purview_server::node::{ClusterSurvey, Roles};
use purview_server::process::ClusterProcess;
use purview_server::storage::{Checkpoints, Leases};

use crate::common::{runtime, tries, with_store};

/// Two regions; 1,200 ticks are twelve seconds.
fn config() -> Config {
    let text = "tick = \"10ms\"\n[server]\narbiters = 1\n[console]\nlisten = \"127.0.0.1:0\"\n\
                [gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\nlame_duck = \"0ms\"\n\
                [cluster]\nnode = \"a\"\nlisten = \"127.0.0.1:0\"\ncheckpoint = \"100ms\"\n\
                [[scene]]\nteleports = \"clients\"\n\
                name = \"city\"\nwidth = \"1024m\"\ndepth = \"512m\"\nregion = [1, 1]\n\
                rates = { near = \"100ms\", middle = \"100ms\", far = \"100ms\" }\n";
    Config::parse(text).unwrap()
}

struct Console(String);

impl Console {
    async fn states(&self) -> Vec<String> {
        let answer = http::get(&self.0, "/api/cluster").await.unwrap();
        let survey: ClusterSurvey = serde_json::from_slice(&answer.body).unwrap();
        survey.regions.into_iter().map(|region| region.state).collect()
    }

    async fn metric(&self, name: &str) -> f64 {
        // A region counts from its first checkpoint.
        tries(name, async || {
            let answer = http::get(&self.0, "/metrics").await.unwrap();
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let line = text.lines().find(|line| line.starts_with(name)).ok_or("no such metric")?;
            Ok::<_, &str>(line.rsplit(' ').next().unwrap().parse().unwrap())
        })
        .await
    }

    async fn shows(&self, state: &str) {
        tries(state, async || {
            let states = self.states().await;
            let are_all = states.len() == 2 && states.iter().all(|now| now == state);
            if are_all { Ok(()) } else { Err(states) }
        })
        .await;
    }
}

#[test]
fn overdue_checkpoints_are_shown_and_recovery_from_one_that_is_too_old_is_counted() {
    with_store(async |store, _| {
        let memory = Memory::new(1);
        let roles = Roles { regions: true, gateway: true };
        let config = config();
        let start = async || {
            let (leases, kept) = (Arc::new(store.another()), Arc::new(memory.clone()));
            let tokens = Tokens::dev();
            let joined =
                ClusterProcess::join(&config, roles, tokens, leases, Some(kept), runtime());
            let node = joined.await.unwrap();
            let console = Console(format!("http://{}", node.console_addr().unwrap()));
            console.shows("runs").await;
            (node, console)
        };
        let (node, console) = start().await;
        assert!(console.metric("purview_checkpoint_age_seconds{region=\"1\"}").await < 12.0);
        memory.set_faults(CheckpointFaults { unreachable: true, ..CheckpointFaults::default() });
        console.shows("overdue").await;
        assert!(console.metric("purview_checkpoint_age_seconds{region=\"1\"}").await > 12.0);
        assert!(console.metric("purview_checkpoints_overdue ").await > 0.0);
        assert_eq!(node.status().borrow().here, 2, "they run");
        memory.set_faults(CheckpointFaults::default());
        console.shows("runs").await;
        assert_eq!(console.metric("purview_regions_recovered_late_total ").await, 0.0);
        node.stop().await;
        assert!(memory.highest_epoch().await.unwrap() > Epoch(0), "the last checkpoints are saved");
        // The cluster's clock goes on while nothing runs: a minute is 6,000 ticks.
        let began = store.get("clock").await.unwrap().unwrap();
        let ms: u64 = std::str::from_utf8(&began.data).unwrap().parse().unwrap();
        let earlier = (ms - 60_000).to_string().into();
        store.put_if("clock", Some(began.revision), earlier).await.unwrap();
        let (node, console) = start().await;
        assert!(console.metric("purview_regions_recovered_late_total ").await > 0.0);
        node.stop().await;
    });
}
