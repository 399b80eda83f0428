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
    pub me: String,
    pub revision: u64,
    pub leader: Option<String>,
    /// Regions of all scenes.
    pub regions_all: usize,
    /// Of these, those of which it is known where they run.
    pub regions_located: usize,
    pub nodes: Vec<NodeLine>,
    /// Of all regions, those that are down: their checkpoints cannot be read.
    pub regions_down: usize,
    /// How often a region went on here from a checkpoint that was older than recovery assumes.
    pub recovered_late: u64,
    pub regions: Vec<RegionLine>,
    pub maps: Vec<MapLine>,
    pub channels: Vec<ChannelLine>,
    /// Callers that this process did not let in as peers.
    pub refused: u64,
    /// Messages of peers that were left out.
    pub left_out: LeftOut,
    /// Messages, and their bytes, that wait for regions of this process whose mailboxes are full.
    pub backlog: (usize, usize),
    /// Messages that were to be kept for regions without an address and found no room.
    pub kept_lost: u64,
}

/// Messages of peers that were left out, by why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeftOut {
    /// Of a former owner.
    pub fenced: u64,
    /// Of a process that may not say such a thing.
    pub forbidden: u64,
    /// Of a kind that only a next release knows.
    pub unknown: u64,
    pub malformed: u64,
    /// With an epoch that cannot be true.
    pub implausible: u64,
    /// Of regions that move, for which there was no room.
    pub moves_refused: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLine {
    pub name: String,
    pub process: u64,
    pub address: String,
    pub takes_regions: bool,
    pub gateway: bool,
    /// Its capacity, relative to the others.
    pub capacity: u32,
    pub owns: usize,
    /// The revision of the store at which it joined: a process that joined later has a higher one.
    pub joined: u64,
    /// Whether it gives its regions to others, to end then.
    pub drains: bool,
    /// Its zone, its labels and its release.
    #[serde(flatten)]
    pub about: About,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionLine {
    pub scene: String,
    pub region: u32,
    pub node: String,
    pub epoch: u64,
    pub planes: u16,
    /// `runs`; `overdue`: it runs, and its last checkpoint is older than recovery assumes; `down`: its checkpoint
    /// cannot be read, and an operator is to decide.
    pub state: String,
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapLine {
    pub scene: String,
    pub version: u64,
    pub regions: usize,
    /// The version to which it is about to change.
    pub next: Option<u64>,
}

/// The traffic to one process on one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelLine {
    pub to: u64,
    pub kind: String,
    pub connected: bool,
    /// The version of the protocol that both speak; 0: none was agreed on yet.
    pub version: u64,
    pub messages: u64,
    pub bytes: u64,
    pub resent: u64,
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
