//! Long rehearsals on the compose file, which the commands in `deploy/rehearse` run. Each prints one report.

mod backup;
mod certificates;
mod sizing;
mod slow_load_balancer;
mod upgrade;

use std::time::Instant;

use super::world::{Clients, PROCESSES, World, container, pause, with_world};

/// Trials, one after the other. A finding of one does not end the others.
struct Trials<'a> {
    world: &'a World,
    bots: u32,
    wrong: Vec<String>,
}

impl Trials<'_> {
    fn of(world: &World, bots: u32) -> Trials<'_> {
        Trials { world, bots, wrong: Vec::new() }
    }

    /// Does something to the cluster under the bots, and tells how long it was not whole.
    fn run(&mut self, (name, clients): (&str, Clients), seconds: u32, work: impl FnOnce(&World)) {
        let (world, bots) = (self.world, self.bots);
        world.wait_whole("gateway-1");
        let judged = world.judge(bots, seconds, clients, |world| {
            world.wait_players(bots);
            work(world);
        });
        let secs = world.wait_whole("gateway-2").as_secs_f64();
        let verdict = if judged.is_ok() { "as promised" } else { "NOT AS PROMISED" };
        println!("== {name}: {verdict}; whole {secs:.1} s after the bots");
        println!("{}", judged.as_ref().unwrap_or_else(|found| found));
        self.wrong.extend(judged.is_err().then(|| name.to_owned()));
    }

    fn end(self) {
        assert!(self.wrong.is_empty(), "not as promised: {:?}", self.wrong);
    }
}

#[test]
#[ignore = "takes minutes: deploy/rehearse/faults"]
fn faults_of_each_process_disturb_no_view() {
    with_world("rehearsals::faults", |world| {
        world.up(&[]);
        let mut trials = Trials::of(world, 200);
        let clients = |service: &str| match service.starts_with("gateway") {
            true => Clients::Resume,
            false => Clients::Stay,
        };
        for service in ["node-2", "gateway-2", "worker"] {
            trials.run((&format!("kill -9 of {service}"), clients(service)), 25, |world| {
                world.0.docker(&["kill", &container(service)]).unwrap();
                world.again(service);
            });
        }
        for service in ["node-3", "gateway-1"] {
            trials.run((&format!("SIGTERM of {service}"), clients(service)), 40, |world| {
                world.0.docker(&["stop", "-t", "60", &container(service)]).unwrap();
                world.again(service);
            });
        }
        trials.run(("SIGTERM of node-1 and node-2 at once", Clients::Stay), 50, |world| {
            let both = ["node-1", "node-2"].map(container);
            std::thread::scope(|scope| {
                for container in &both {
                    scope.spawn(|| world.0.docker(&["stop", "-t", "60", container]).unwrap());
                }
            });
            ["node-1", "node-2"].iter().for_each(|service| world.again(service));
        });
        trials.run(("15 s without a network for node-2", Clients::Stay), 45, |world| {
            let network = ["purview_default", &container("node-2")];
            world.0.docker(&[&["network", "disconnect"], &network[..]].concat()).unwrap();
            pause(15);
            let alias = ["network", "connect", "--alias", "node-2", "--alias", "nodes"];
            world.0.docker(&[&alias[..], &network[..]].concat()).unwrap();
            world.again("node-2");
        });
        for service in ["etcd", "postgres"] {
            trials.run((&format!("restart of {service}"), Clients::Stay), 30, |world| {
                world.0.docker(&["restart", &container(service)]).unwrap();
            });
        }
        trials.end();
    });
}

#[test]
#[ignore = "takes minutes: deploy/rehearse/late-stores"]
fn processes_start_in_any_order_and_the_stores_half_a_minute_late() {
    with_world("rehearsals::late_stores", |world| {
        world.compose(&["create", "--no-build", "--pull", "never"]);
        world.compose(&["run", "--rm", "-T", "setup"]);
        let mut order = PROCESSES;
        order.reverse();
        for service in order {
            drop(world.0.docker(&["start", &container(service)]).unwrap());
        }
        pause(10);
        for service in PROCESSES {
            let alive = world.exec(service, &["purview", "ctl", "ready"]).unwrap_err();
            assert!(alive.contains("waiting"), "{service}: {alive}");
        }
        pause(20);
        let begin = Instant::now();
        for store in ["postgres", "etcd", "haproxy"] {
            drop(world.0.docker(&["start", &container(store)]).unwrap());
        }
        world.wait_whole("gateway-1");
        println!("== stores 30 s late: whole {:.1} s after them", begin.elapsed().as_secs_f64());
        world.walk(10, |_| ());
    });
}
