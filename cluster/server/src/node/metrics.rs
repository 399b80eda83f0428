//! The metrics of a process as a member of its cluster: its lease, what it leads and moves, and its
//! channels to peers. The console encodes them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use purview::clock;

use super::balancer::Board;
use super::migration::Migrator;
use super::survey::{LeftOut, left_out};
use super::surveyor::Surveyor;
use crate::metrics::{Collector, Families};
use crate::peer::{CHANNEL_BYTES, Links};
use crate::storage::Authority;

#[derive(Debug)]
pub(crate) struct NodeCollector {
    pub(super) surveyor: Surveyor,
    pub(super) authority: Authority,
    pub(super) board: Board,
    pub(super) migrator: Migrator,
}

impl Collector for NodeCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut out = Families::from(encoder);
        self.write_membership(&mut out)?;
        write_channels(&mut out, &self.channels())?;
        write_received(&mut out, self.surveyor.links())
    }
}

#[derive(Debug)]
struct Channel {
    peer: String,
    channel: &'static str,
    connected: bool,
    waiting_bytes: u64,
    messages: u64,
    bytes: u64,
    resent: u64,
    full: u64,
}

impl NodeCollector {
    fn write_membership(&self, out: &mut Families<'_>) -> fmt::Result {
        let margin = self.authority.holds_until().saturating_duration_since(clock::now());
        out.gauge(
            "purview_lease_margin_seconds",
            "Time for which the process may act without another answer of the store.",
            margin.as_secs_f64(),
        )?;
        let status = self.surveyor.status().borrow().clone();
        let help = "Whether this process is the leader of the cluster.";
        out.gauge("purview_leader", help, u64::from(status.leads))?;
        let (leaving, arriving) = self.migrator.under_way();
        let help = "Migrations in progress to or from this process.";
        let mut migrations = out.gauges("purview_migrations_in_progress", help)?;
        migrations.gauge(&[("direction", "in")], arriving as u64)?;
        migrations.gauge(&[("direction", "out")], leaving as u64)?;
        if let Some(wanted) = self.board.nodes_wanted() {
            let help = "Nodes that the loads of all regions need; only the leader says so.";
            out.gauge("purview_balance_nodes_wanted", help, u64::from(wanted))?;
        }
        let help = "Regions of the whole cluster whose checkpoints cannot be read.";
        out.gauge("purview_regions_down", help, status.down as u64)?;
        let help = "Recoveries here from checkpoints older than recovery assumes.";
        out.counter("purview_regions_recovered_late", help, status.recovered_late)?;
        let help = "Regions whose owner this process knows.";
        out.gauge("purview_regions_located", help, status.located as u64)
    }

    /// The channels to peers whose names are known.
    fn channels(&self) -> Vec<Channel> {
        let names: BTreeMap<u64, String> = {
            let view = self.surveyor.views().read();
            view.nodes.values().map(|node| (node.process, node.name.clone())).collect()
        };
        let mut channels = Vec::new();
        self.surveyor.links().each_channel(|to, kind, metrics, connected, waiting_bytes| {
            // A process that is no longer a member: its channel is about to end.
            let Some(peer) = names.get(&to) else { return };
            channels.push(Channel {
                peer: peer.clone(),
                channel: kind.name(),
                connected,
                waiting_bytes: waiting_bytes as u64,
                messages: metrics.messages.load(Relaxed),
                bytes: metrics.bytes.load(Relaxed),
                resent: metrics.resent.load(Relaxed),
                full: metrics.full.load(Relaxed),
            });
        });
        channels
    }
}

/// A metric of each channel; counters are without `_total`.
type Family = (&'static str, MetricType, &'static str, fn(&Channel) -> u64);

const FAMILIES: [Family; 6] = [
    (
        "purview_link_connected",
        MetricType::Gauge,
        "Whether there is a connection to a peer.",
        |channel| channel.connected.into(),
    ),
    (
        "purview_link_waiting_bytes",
        MetricType::Gauge,
        "Bytes that a peer has not acknowledged.",
        |channel| channel.waiting_bytes,
    ),
    ("purview_link_messages", MetricType::Counter, "Messages sent to a peer.", |channel| {
        channel.messages
    }),
    ("purview_link_bytes", MetricType::Counter, "Bytes of messages sent to a peer.", |channel| {
        channel.bytes
    }),
    (
        "purview_link_resent",
        MetricType::Counter,
        "Messages sent again after a connection was lost.",
        |channel| channel.resent,
    ),
    (
        "purview_link_full",
        MetricType::Counter,
        "Messages refused because the channel to a peer was full.",
        |channel| channel.full,
    ),
];

fn write_channels(out: &mut Families<'_>, channels: &[Channel]) -> fmt::Result {
    let labels =
        |channel: &Channel| [("peer", channel.peer.clone()), ("channel", channel.channel.into())];
    let labelled: Vec<_> = channels.iter().map(|channel| (labels(channel), channel)).collect();
    for (name, kind, help, of) in FAMILIES {
        let mut samples = out.family(name, help, kind)?;
        for (labels, channel) in &labelled {
            let labels = labels.each_ref().map(|(name, value): &(_, String)| (*name, &**value));
            match kind {
                MetricType::Counter => samples.counter(&labels, of(channel))?,
                _ => samples.gauge(&labels, of(channel))?,
            }
        }
    }
    let help = "How full the channel to a peer is: 1 and more refuses messages.";
    let mut fullness = out.gauges("purview_link_fullness_ratio", help)?;
    for (labels, channel) in &labelled {
        let labels = labels.each_ref().map(|(name, value)| (*name, &**value));
        fullness.gauge(&labels, channel.waiting_bytes as f64 / CHANNEL_BYTES as f64)?;
    }
    Ok(())
}

fn write_received(out: &mut Families<'_>, links: &Links) -> fmt::Result {
    let help = "Callers that were not accepted as peers.";
    out.counter("purview_links_refused", help, links.refused())?;
    links.connections().encode("purview_links", out)?;
    let mut dropped =
        out.counters("purview_links_left_out", "Messages of peers that were dropped.")?;
    let LeftOut { fenced, forbidden, unknown, malformed, implausible, moves_refused } =
        left_out(links);
    for (reason, count) in [
        ("fenced", fenced),
        ("forbidden", forbidden),
        ("unknown", unknown),
        ("malformed", malformed),
        ("implausible", implausible),
        ("move_refused", moves_refused),
    ] {
        dropped.counter(&[("reason", reason)], count)?;
    }
    let received = links.router().metrics();
    let help = "Messages of peers for regions that are not here.";
    out.counter("purview_links_misrouted", help, received.misrouted.load(Relaxed))?;
    let help = "Frames of peers lost because a session's mailbox was full.";
    out.counter("purview_links_frames_lost", help, received.frames_lost.load(Relaxed))?;
    let (messages, bytes) = links.router().backlog();
    let help = "Messages that wait for regions whose mailboxes are full.";
    out.gauge("purview_links_backlog_messages", help, messages as u64)?;
    let help = "Bytes that wait for regions whose mailboxes are full.";
    out.gauge("purview_links_backlog_bytes", help, bytes as u64)?;
    let help = "Messages for regions without an owner that found no room to wait.";
    out.counter("purview_kept_lost", help, links.kept_lost())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::text_of;

    #[derive(Debug)]
    struct Channels(Vec<Channel>);

    impl Collector for Channels {
        fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
            write_channels(&mut encoder.into(), &self.0)
        }
    }

    #[test]
    fn channels_are_labelled_by_the_peers_name_and_say_how_full_they_are() {
        let channel = |channel, waiting_bytes| Channel {
            peer: "north \"1\"".into(),
            channel,
            connected: channel == "regions",
            waiting_bytes,
            messages: 7,
            bytes: 700,
            resent: 2,
            full: 3,
        };
        let half = CHANNEL_BYTES as u64 / 2;
        let text = text_of(Channels(vec![channel("regions", half), channel("sessions", 0)]));
        let labels = |channel: &str| format!("{{peer=\"north \\\"1\\\"\",channel=\"{channel}\"}}");
        for (name, channel, value) in [
            ("purview_link_connected", "regions", "1"),
            ("purview_link_connected", "sessions", "0"),
            ("purview_link_waiting_bytes", "regions", "16777216"),
            ("purview_link_fullness_ratio", "regions", "0.5"),
            ("purview_link_fullness_ratio", "sessions", "0.0"),
            ("purview_link_messages_total", "sessions", "7"),
            ("purview_link_bytes_total", "sessions", "700"),
            ("purview_link_resent_total", "sessions", "2"),
            ("purview_link_full_total", "sessions", "3"),
        ] {
            let line = format!("{name}{} {value}", labels(channel));
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
