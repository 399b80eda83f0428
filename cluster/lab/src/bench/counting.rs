//! A logic worker with the smallest game there is: it counts the actions of each player in a property. It keeps nothing
//! that another worker could not take over, and sends nothing again: while the server lives, a batch counts as a whole or
//! not at all.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Context;
use clap::Args;
use purview::scene::properties::{Value, ValueError};
use purview_server::interest::client::Address;
use purview_server::logic::client::{Lease, Stream};
use purview_server::logic::proto::{self, command, event, response};

/// The property.
pub const COUNT: u8 = 1;

/// What the process prints once its session has begun.
pub const READY: &str = "counting";

/// `purview-lab bench counting-worker`: a process of `purview-lab bench takeover`.
#[derive(Debug, Clone, Args)]
pub struct CountingWorkerArgs {
    /// Where the server lets workers in.
    pub address: String,
}

/// A player.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    region: u32,
    actions: u64,
    /// The number of the last command.
    number: u64,
    is_new: bool,
}

#[derive(Debug, Default)]
struct Counting {
    players: BTreeMap<u64, Counted>,
    leases: BTreeMap<u32, Lease>,
}

/// Serves until the server ends.
///
/// # Errors
/// The server does not let it in, or the stream breaks.
pub fn counting_worker(args: &CountingWorkerArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let name = format!("counting {}", std::process::id());
        let open = proto::Open { scene: "bench".into(), name, ..proto::Open::default() };
        let address = Address::new(&format!("http://{}", args.address));
        let mut stream = Stream::begin(&address, open).await?;
        let mut out = std::io::stdout();
        writeln!(out, "{READY}")?;
        out.flush()?;
        let mut counting = Counting::default();
        while let Some(message) = stream.next().await? {
            match counting.take(message)? {
                Some(lease) => stream.send(lease, counting.commands(lease.region)?).await?,
                None => stream.acknowledge().await?,
            }
        }
        Ok(())
    })
}

impl Counting {
    /// Takes a response; the lease whose tick is to be answered, if it is one.
    fn take(&mut self, message: response::Message) -> anyhow::Result<Option<Lease>> {
        match message {
            response::Message::Started(started) => {
                let proto::Started { region, epoch, lease, tick, more, .. } = started;
                started.entities.iter().try_for_each(|entity| self.meet(entity, region))?;
                started.acted.iter().for_each(|act| self.count(act));
                let lease = Lease { region, epoch, lease, tick };
                self.leases.insert(region, lease);
                Ok((!more).then_some(lease))
            }
            response::Message::Events(events) => {
                for event in events.events.iter().filter_map(|event| event.event.as_ref()) {
                    match event {
                        event::Event::Entered(entered) => {
                            let entity = entered.entity.as_ref().context("an entity is missing")?;
                            self.meet(entity, events.region)?;
                        }
                        event::Event::Acted(act) => self.count(act),
                        _ => {}
                    }
                }
                let lease = self.leases.get_mut(&events.region);
                lease.into_iter().for_each(|lease| lease.tick = events.tick);
                Ok(self.leases.get(&events.region).copied().filter(|_| !events.more))
            }
            response::Message::Ended(ended) => {
                self.leases.remove(&ended.region);
                Ok(None)
            }
            response::Message::Dropped(_) => {
                self.leases.clear();
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn meet(&mut self, entity: &proto::Entity, region: u32) -> anyhow::Result<()> {
        let count = entity.properties.iter().find(|known| known.id == u32::from(COUNT));
        let value = count.map(|count| Value::new(count.value.clone())).transpose()?;
        let actions = value.map_or(Ok(0), |value| value.read())?;
        let number = entity.applied;
        self.players.insert(entity.id, Counted { region, actions, number, is_new: false });
        Ok(())
    }

    fn count(&mut self, act: &proto::Acted) {
        if let Some(player) = self.players.get_mut(&act.entity).filter(|_| !act.by_logic) {
            player.actions += 1;
            player.is_new = true;
        }
    }

    /// The counts of a region that are new.
    fn commands(&mut self, region: u32) -> Result<Vec<proto::Command>, ValueError> {
        let mut commands = Vec::new();
        let all = self.players.iter_mut();
        for (entity, player) in all.filter(|(_, player)| player.region == region && player.is_new) {
            (player.number, player.is_new) = (player.number + 1, false);
            let value = Value::of(&player.actions)?.bytes().clone();
            let property = proto::Property { id: COUNT.into(), value, version: 0 };
            let command = Some(command::Command::SetProperty(property));
            commands.push(proto::Command { entity: *entity, number: player.number, command });
        }
        Ok(commands)
    }
}
