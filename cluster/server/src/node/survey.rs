//! What a process knows of its cluster, to be told: `/api/cluster` and `purview ctl`.

use std::sync::atomic::Ordering::Relaxed;

use purview::scene::Scene;
use serde::{Deserialize, Serialize};

use super::maps::Maps;
use super::{Status, down, layout_change, plan};
use crate::peer::Links;
use crate::storage::{About, Incarnation, NodeInfo, Owner, RegionKey, View};

/// The cluster as one of its processes sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClusterSurvey {
    /// The node that reports this.
    pub me: String,
    /// The store's revision of which this is.
    pub revision: u64,
    /// The leader, if there is one.
    pub leader: Option<String>,
    /// Regions of all scenes.
    pub regions_all: usize,
    /// Of these, those of which it is known where they run.
    pub regions_located: usize,
    /// Processes that are there.
    pub nodes: Vec<NodeLine>,
    /// Of all regions, those that are down: their checkpoints cannot be read.
    #[serde(default)]
    pub regions_down: usize,
    /// How often a region went on here from a checkpoint that was older than recovery assumes.
    #[serde(default)]
    pub recovered_late: u64,
    /// Regions that have an owner.
    pub regions: Vec<RegionLine>,
    /// The region map of each scene.
    #[serde(default)]
    pub maps: Vec<MapLine>,
    /// The channels from this process to others.
    pub channels: Vec<ChannelLine>,
    /// Callers that this process did not let in as peers.
    #[serde(default)]
    pub refused: u64,
    /// Messages of peers that were left out.
    #[serde(default)]
    pub left_out: LeftOut,
    /// Messages, and their bytes, that wait for regions of this process whose mailboxes are full.
    #[serde(default)]
    pub backlog: (usize, usize),
    /// Messages that were to be kept for regions without an address and found no room.
    #[serde(default)]
    pub kept_lost: u64,
}

/// Messages of peers that were left out, by why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeftOut {
    /// Of a former owner.
    pub fenced: u64,
    /// Of a process that may not say such a thing.
    #[serde(default)]
    pub forbidden: u64,
    /// Of a kind that only a next release knows.
    pub unknown: u64,
    /// Not understood.
    pub malformed: u64,
    /// With an epoch that cannot be true.
    #[serde(default)]
    pub implausible: u64,
    /// Of regions that move, for which there was no room.
    #[serde(default)]
    pub moves_refused: u64,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLine {
    /// Its name.
    pub name: String,
    /// Its number.
    pub process: u64,
    /// Where its peers reach it.
    pub address: String,
    /// Whether it takes regions.
    pub takes_regions: bool,
    /// Whether it holds sessions.
    pub gateway: bool,
    /// Its capacity, relative to the others.
    pub capacity: u32,
    /// How many regions it owns.
    pub owns: usize,
    /// The revision of the store at which it joined: a process that joined later has a higher one.
    #[serde(default)]
    pub joined: u64,
    /// Whether it gives its regions to others, to end then.
    #[serde(default)]
    pub drains: bool,
    /// Its zone, its labels and its release.
    #[serde(default, flatten)]
    pub about: About,
}

/// A region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionLine {
    /// Its scene.
    pub scene: String,
    /// Which.
    pub region: u32,
    /// Whose.
    pub node: String,
    /// Under which epoch.
    pub epoch: u64,
    /// Its group of planes.
    #[serde(default)]
    pub planes: u16,
    /// `runs`; `overdue`: it runs, and its last checkpoint is older than recovery assumes; `down`: its checkpoint
    /// cannot be read, and an operator is to decide.
    #[serde(default)]
    pub state: String,
    /// Why it is down.
    #[serde(default)]
    pub why: Option<String>,
}

/// A scene's region map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapLine {
    /// The scene.
    pub scene: String,
    /// The version that counts.
    pub version: u64,
    /// How many regions it has.
    pub regions: usize,
    /// The version to which it is about to change.
    pub next: Option<u64>,
}

/// The traffic to one process on one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelLine {
    /// The receiving process.
    pub to: u64,
    /// For regions or for sessions.
    pub kind: String,
    /// Whether it is connected.
    pub connected: bool,
    /// The version of the protocol that both speak; 0: none was agreed on yet.
    #[serde(default)]
    pub version: u64,
    /// Messages so far.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages sent again after a connection was lost.
    pub resent: u64,
    /// Bytes that are not acknowledged.
    pub waiting_bytes: usize,
}

impl ClusterSurvey {
    pub(super) fn new(
        me: &str,
        (view, maps): (&View, &Maps),
        status: &Status,
        links: &Links,
    ) -> ClusterSurvey {
        ClusterSurvey {
            me: me.into(),
            revision: view.revision.0,
            leader: view.leader.as_ref().map(|leader| leader.node.clone()),
            regions_all: status.regions,
            regions_located: status.located,
            regions_down: status.down,
            recovered_late: status.recovered_late,
            nodes: nodes(view),
            regions: regions(view),
            maps: maps.scenes().iter().map(|scene| map(view, scene)).collect(),
            channels: channels(links),
            refused: links.refused(),
            left_out: left_out(links),
            backlog: links.router().backlog(),
            kept_lost: links.kept_lost(),
        }
    }
}

fn map(view: &View, scene: &Scene) -> MapLine {
    MapLine {
        scene: scene.spec.name.clone(),
        version: scene.map.version,
        regions: scene.map.regions.len(),
        next: layout_change::record_of(view, scene).next.map(|next| next.layout.version),
    }
}

fn nodes(view: &View) -> Vec<NodeLine> {
    let owns = |i: Incarnation| view.owners.values().filter(|o| o.incarnation == i).count();
    let node = |(incarnation, node): (&Incarnation, &NodeInfo)| NodeLine {
        name: node.name.clone(),
        process: node.process,
        address: node.address.clone(),
        takes_regions: node.regions,
        gateway: node.gateway,
        capacity: node.capacity,
        owns: owns(*incarnation),
        joined: incarnation.0,
        drains: plan::is_drained(view, *incarnation),
        about: node.about.clone(),
    };
    view.nodes.iter().map(node).collect()
}

fn regions(view: &View) -> Vec<RegionLine> {
    let (down, overdue) = (down::all(view), down::overdue(view));
    let state = |id: u32| match (down.contains_key(&id), overdue.contains_key(&id)) {
        (true, _) => "down",
        (false, true) => "overdue",
        (false, false) => "runs",
    };
    let region = |(key, owner): (&RegionKey, &Owner)| RegionLine {
        scene: key.scene.clone(),
        region: key.region,
        node: owner.node.clone(),
        epoch: owner.epoch.0,
        planes: key.planes,
        state: state(key.region).into(),
        why: down.get(&key.region).map(|down| down.why.clone()),
    };
    view.owners.iter().map(region).collect()
}

fn channels(links: &Links) -> Vec<ChannelLine> {
    let mut channels = Vec::new();
    links.each_channel(|to, kind, metrics, connected, waiting_bytes| {
        channels.push(ChannelLine {
            to,
            kind: kind.name().into(),
            connected,
            version: metrics.version.load(Relaxed),
            messages: metrics.messages.load(Relaxed),
            bytes: metrics.bytes.load(Relaxed),
            resent: metrics.resent.load(Relaxed),
            waiting_bytes,
        });
    });
    channels.sort_by(|a, b| (a.to, &a.kind).cmp(&(b.to, &b.kind)));
    channels
}

pub(super) fn left_out(links: &Links) -> LeftOut {
    let received = links.router().metrics();
    LeftOut {
        fenced: received.fenced.load(Relaxed),
        forbidden: received.forbidden.load(Relaxed),
        unknown: received.unknown.load(Relaxed),
        malformed: received.malformed.load(Relaxed),
        implausible: received.implausible.load(Relaxed),
        moves_refused: received.moves_refused.load(Relaxed),
    }
}
