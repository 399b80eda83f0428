//! What the regions of this process have to do, as the leader asks every second.

use futures::future::join_all;
use purview::actor::messages::Weigh;
use purview::scene::RegionId;
use purview::scene::load::RegionReport;

use super::hosted::Hosted;
use super::inspect::in_time;

/// Most lands of an answer, about 30 bytes each.
const MAX_LANDS: usize = 16_384;

/// A report of each region here that answers in time.
pub(super) async fn measure(hosted: &Hosted) -> Vec<(RegionId, RegionReport)> {
    let regions = hosted.now();
    let asked = regions.iter().map(|region| async move {
        Some((region.region, in_time(region.weigh.send(Weigh)).await?))
    });
    let mut reports: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
    bound(&mut reports, MAX_LANDS);
    reports
}

/// Leaves the lands of the regions with least to do out, so that at most so many remain.
fn bound(reports: &mut [(RegionId, RegionReport)], most: usize) {
    let mut heaviest: Vec<usize> = (0..reports.len()).collect();
    heaviest.sort_by(|a, b| reports[*b].1.tick_us.total_cmp(&reports[*a].1.tick_us).then(a.cmp(b)));
    let mut room = most;
    for at in heaviest {
        let lands = &mut reports[at].1.lands;
        match lands.as_ref().map_or(0, Vec::len) {
            count if count <= room => room -= count,
            _ => *lands = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use purview::scene::load::LandReport;

    #[test]
    fn lands_are_left_out_where_least_is_to_do() {
        let report = |id: u32, tick_us: f32, lands: usize| {
            let lands = Some(vec![LandReport::default(); lands]);
            (RegionId(id), RegionReport { tick_us, lands, ..RegionReport::default() })
        };
        let mut reports = vec![report(1, 10.0, 3), report(2, 30.0, 6), report(3, 20.0, 5)];
        bound(&mut reports, 10);
        let told: Vec<bool> = reports.iter().map(|(_, report)| report.lands.is_some()).collect();
        assert_eq!(told, [true, true, false]);
    }
}
