//! Players on paper that walk as people were recorded. The recording's ground is stretched over the map, and a shorter
//! recording over the run; each walker of the recording is as many players as bring its fullest moment to the number
//! that is asked for.

use super::field::{Field, LAND};
use super::workload::PATCH_M;
use crate::load::trace::{Agent, Trace};
use crate::rng::Rng;

/// The deviation of the players of one walker from its place, metres.
const SIGMA_M: f64 = 40.0;

#[derive(Debug)]
pub(super) struct Recorded {
    /// The file's name.
    pub name: String,
    /// For each second of the run the walkers that are there: their numbers and places, as parts of the map's sides.
    seconds: Vec<Vec<(usize, [f64; 2])>>,
    walkers: usize,
}

impl Recorded {
    pub(super) fn new(name: String, trace: &Trace, run_s: u64) -> Recorded {
        let slower = (run_s as f64 / trace.length_s.max(1.0)).max(1.0);
        let mut seconds = vec![Vec::new(); run_s as usize];
        let size = trace.size_cm(1.0).map(f64::from);
        for (number, agent) in trace.agents.iter().enumerate() {
            for (t, there) in seconds.iter_mut().enumerate() {
                let at = place(trace, agent, t as f64 / slower);
                there.extend(at.map(|at| (number, [at[0] / size[0], at[1] / size[1]])));
            }
        }
        Recorded { name, seconds, walkers: trace.agents.len() }
    }

    /// A map of so many lands in each second of the run.
    pub(super) fn fields(
        &self,
        players: usize,
        lands: i32,
        seed: u64,
    ) -> impl Iterator<Item = Field> {
        let most = self.seconds.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let each = players.div_ceil(most);
        let mut rng = Rng::new(seed);
        let off = (0..self.walkers * each).map(|_| [rng.normal(), rng.normal()]);
        let off: Vec<[f64; 2]> = off.collect();
        let patches = lands * LAND;
        let side = f64::from(patches) * PATCH_M;
        self.seconds.iter().map(move |there| {
            let mut players = vec![0; (patches * patches) as usize];
            for (walker, at) in there {
                for off in &off[walker * each..(walker + 1) * each] {
                    let on = |axis: usize| {
                        (at[axis] * side + SIGMA_M * off[axis]).clamp(0.0, side - 1.0)
                    };
                    let [x, z] = [0, 1].map(|axis| (on(axis) / PATCH_M) as usize);
                    players[z * patches as usize + x] += 1;
                }
            }
            Field::new(patches, patches, &players)
        })
    }
}

/// Where a walker is on the recording's ground, centimetres; `None`: not there.
fn place(trace: &Trace, agent: &Agent, t_s: f64) -> Option<[f64; 2]> {
    let next = agent.samples.partition_point(|sample| sample.t_s < t_s);
    let after = agent.samples.get(next)?;
    let before = if after.t_s == t_s { after } else { agent.samples.get(next.checked_sub(1)?)? };
    let part = (t_s - before.t_s) / (after.t_s - before.t_s).max(f64::MIN_POSITIVE);
    let [from, to] = [before, after].map(|sample| trace.pos(sample, 1.0));
    let on = |from: i32, to: i32| f64::from(from) + f64::from(to - from) * part;
    Some([on(from.x, to.x), on(from.z, to.z)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_walker_is_so_many_players_from_its_first_row_to_its_last() {
        let csv = "t_s,id,x_m,z_m\n0,a,0,0\n0,b,10,10\n2,a,10,0\n2,b,10,10\n4,a,10,10\n";
        let trace = Trace::read(csv.as_bytes()).unwrap();
        let at = |agent: usize, t_s| place(&trace, &trace.agents[agent], t_s);
        assert_eq!(
            [at(0, 1.0), at(0, 4.0), at(0, 4.1)],
            [Some([600.0, 100.0]), Some([1_100.0; 2]), None]
        );
        // Stretched to 8 s, of which the second walker is there for four.
        let recorded = Recorded::new("two".into(), &trace, 8);
        let there: Vec<usize> = recorded.seconds.iter().map(Vec::len).collect();
        assert_eq!(there, [2, 2, 2, 2, 2, 1, 1, 1]);
        assert_eq!(recorded.fields(10, 16, 1).count(), 8);
    }
}
