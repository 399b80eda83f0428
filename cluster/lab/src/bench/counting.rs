//! A logic worker with the smallest game there is: it counts the actions of each player in a property. It keeps nothing
//! that another worker could not take over: an answer counts as a whole or not at all.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use purview::scene::properties::{Value, ValueError};
use purview_server::interest::client::Address;
use purview_server::logic::client::Stream;
use purview_server::logic::proto::{self, Told, command, response};

pub const COUNT: u8 = 1;

/// What the process prints once its session has begun.
pub const READY: &str = "counting";

/// `purview-lab bench counting-worker`: a process of `purview-lab bench takeover`.
#[derive(Debug, Clone, Args)]
pub struct CountingWorkerArgs {
    /// Where the server lets workers in.
    pub address: String,
}

#[derive(Debug, Default)]
struct Counting(BTreeMap<u32, BTreeMap<u64, u64>>);

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
            let response::Message::Told(told) = message else { continue };
            let commands = counting.take(&told)?;
            stream.answer(&told, commands).await?;
        }
        Ok(())
    })
}

impl Counting {
    /// Takes what a region tells; the counts that are new.
    fn take(&mut self, told: &Told) -> anyhow::Result<Vec<proto::Command>> {
        let players = self.0.entry(told.lease.unwrap_or_default().region).or_default();
        if told.seq == 1 {
            players.clear();
        }
        players.retain(|id, _| !told.gone.contains(id));
        let whole = told.entities.iter().map(|entity| (entity.id, &entity.properties, true));
        let changed =
            told.changed.iter().map(|changed| (changed.entity, &changed.properties, false));
        for (id, properties, is_whole) in whole.chain(changed) {
            let count = properties.iter().find(|known| known.id == u32::from(COUNT));
            match count {
                Some(count) => {
                    players.insert(id, Value::new(count.value.clone())?.read()?);
                }
                None if is_whole => {
                    players.insert(id, 0);
                }
                None => {}
            }
        }
        let mut new = BTreeMap::new();
        for act in told.acts.iter().filter(|act| !act.by_logic) {
            if let Some(actions) = players.get_mut(&act.entity) {
                *actions += 1;
                new.insert(act.entity, *actions);
            }
        }
        Ok(new.into_iter().map(|(id, actions)| set(id, actions)).collect::<Result<_, _>>()?)
    }
}

fn set(entity: u64, actions: u64) -> Result<proto::Command, ValueError> {
    let value = Value::of(&actions)?.bytes().clone();
    let property = proto::Property { id: COUNT.into(), value, version: 0 };
    let command = Some(command::Command::SetProperty(property));
    Ok(proto::Command { entity, command, ..proto::Command::default() })
}
