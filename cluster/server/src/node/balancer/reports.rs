//! The newest report of each region, by the node that gave it.

use std::collections::BTreeMap;

use purview::scene::RegionId;
use purview::scene::load::RegionReport;

use crate::storage::View;

/// How long a report counts, seconds: some questions are not answered in time.
const FRESH_S: u64 = 5;

#[derive(Debug, Default)]
pub(super) struct Reports(BTreeMap<RegionId, (String, u64, RegionReport)>);

impl Reports {
    pub(super) fn take(&mut self, node: &str, loads: Vec<(RegionId, RegionReport)>, now_s: u64) {
        self.0.extend(loads.into_iter().map(|(id, report)| (id, (node.to_owned(), now_s, report))));
    }

    /// The reports that count; only a region's owner reports of it.
    pub(super) fn fresh(&mut self, view: &View, now_s: u64) -> BTreeMap<RegionId, RegionReport> {
        self.0.retain(|_, (_, at, _)| now_s < *at + FRESH_S);
        let owners = view.owners.iter().filter_map(|(key, owner)| {
            let (node, _, report) = self.0.get(&RegionId(key.region))?;
            (*node == owner.node).then(|| (RegionId(key.region), report.clone()))
        });
        owners.collect()
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::Epoch;

    use super::*;
    use crate::storage::{Incarnation, Owner, RegionKey};

    fn owned_by(node: &str, region: u32) -> View {
        let (incarnation, epoch) = (Incarnation(1), Epoch(1));
        let owner = Owner { node: node.into(), incarnation, epoch, lineage: epoch };
        let key = RegionKey { scene: "city".into(), region, planes: 0 };
        View { owners: [(key, owner)].into(), ..View::default() }
    }

    #[test]
    fn a_report_counts_for_some_seconds_and_only_from_the_owner() {
        let mut reports = Reports::default();
        let report = RegionReport { players: 7, ..RegionReport::default() };
        reports.take("a", vec![(RegionId(4), report.clone())], 10);
        assert_eq!(reports.fresh(&owned_by("b", 4), 10).len(), 0);
        assert_eq!(reports.fresh(&owned_by("a", 4), 10)[&RegionId(4)], report);
        assert_eq!(reports.fresh(&owned_by("a", 5), 10).len(), 0);
        assert_eq!(reports.fresh(&owned_by("a", 4), 14).len(), 1);
        assert_eq!(reports.fresh(&owned_by("a", 4), 15).len(), 0);
    }
}
