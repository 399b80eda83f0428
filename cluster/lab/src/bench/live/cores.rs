//! Sets of cores, and what runs on them.

use std::str::FromStr;

use anyhow::Context;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A set of cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(Vec<usize>);

/// The error of an invalid set of cores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected numbers of cores from 0 to {}, separated by commas, for example 0 or 0,1", CpuSet::MAX_CPU - 1)]
pub struct CoresError;

impl FromStr for Cores {
    type Err = CoresError;

    fn from_str(text: &str) -> Result<Cores, CoresError> {
        let number = |part: &str| part.trim().parse().ok().filter(|n| *n < CpuSet::MAX_CPU);
        let cores: Option<Vec<usize>> = text.split(',').map(number).collect();
        cores.map(Cores).ok_or(CoresError)
    }
}

impl Cores {
    /// The cores of the server and of the bots: as asked for, else the first core that this process may use and
    /// all others. On a machine with one core both have it.
    ///
    /// # Errors
    /// The system does not say which cores there are.
    pub(super) fn divide(
        server: Option<Cores>,
        bots: Option<Cores>,
    ) -> anyhow::Result<(Cores, Cores)> {
        let set = sched_getaffinity(None).context("the cores of this process are unknown")?;
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|n| set.is_set(*n)).collect();
        let server = server.unwrap_or_else(|| Cores(all[..1.min(all.len())].to_vec()));
        let others: Vec<usize> = all.iter().copied().filter(|n| !server.0.contains(n)).collect();
        let others = if others.is_empty() { all } else { others };
        Ok((server, bots.unwrap_or(Cores(others))))
    }

    fn set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        self.0.iter().for_each(|core| set.set(*core));
        set
    }

    /// Lets this thread run on these cores only, and all threads that it starts later.
    ///
    /// # Errors
    /// The machine has none of them.
    pub(super) fn pin_this_thread(&self) -> anyhow::Result<()> {
        sched_setaffinity(None, &self.set()).with_context(|| format!("cores {:?}", self.0))
    }

    /// Lets all threads of a process run on these cores only.
    ///
    /// # Errors
    /// As [`Cores::pin_this_thread`]; or there is no such process.
    pub(super) fn pin_process(&self, pid: u32) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = entry?.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
            sched_setaffinity(thread, &self.set())
                .with_context(|| format!("cores {:?} of the bots", self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_is_parsed() {
        assert_eq!("0".parse(), Ok(Cores(vec![0])));
        assert_eq!("2, 3".parse(), Ok(Cores(vec![2, 3])));
        for wrong in ["", "a", "1,,2", "-1", "4096"] {
            assert_eq!(wrong.parse::<Cores>(), Err(CoresError), "{wrong}");
        }
    }

    #[test]
    fn the_server_and_the_bots_share_no_core_if_there_are_two() {
        let (server, bots) = Cores::divide(None, None).unwrap();
        assert_eq!(server.0.len(), 1);
        assert!(bots.0.len() == 1 || !bots.0.contains(&server.0[0]));
        let asked = Cores::divide(Some(Cores(vec![5])), Some(Cores(vec![7, 8]))).unwrap();
        assert_eq!(asked, (Cores(vec![5]), Cores(vec![7, 8])));
    }
}
