//! What processes use, as the system reports it. `None` where it does not.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds of a process so far, to a hundredth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    /// In the process's own code.
    pub user_s: f64,
    /// In the kernel, for the process.
    pub kernel_s: f64,
}

impl Cpu {
    /// Of a process: its id, or `self`.
    pub fn of(process: impl std::fmt::Display) -> Option<Cpu> {
        parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?).map(|(.., cpu)| cpu)
    }

    pub fn total_s(self) -> f64 {
        self.user_s + self.kernel_s
    }
}

/// Process id, parent and CPU time of a process, from its line in /proc.
fn parse(stat: &str) -> Option<(u32, u32, Cpu)> {
    let pid = stat.split(' ').next()?.parse().ok()?;
    // The name may contain anything; the last bracket ends it.
    let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let hz = rustix::param::clock_ticks_per_second().max(1) as f64;
    let seconds = |i: usize| Some(rest.get(i)?.parse::<f64>().ok()? / hz);
    Some((pid, rest.get(1)?.parse().ok()?, Cpu { user_s: seconds(11)?, kernel_s: seconds(12)? }))
}

/// CPU seconds of all child processes of this process so far, and of their children.
pub fn children_cpu_s() -> f64 {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    // A process may end in the meantime.
    let read = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let all: Vec<_> = read.filter_map(|stat| parse(&stat)).collect();
    let (mut ours, mut sum) = (vec![std::process::id()], 0.0);
    while let Some(parent) = ours.pop() {
        for (pid, _, cpu) in all.iter().filter(|(_, ppid, _)| *ppid == parent) {
            ours.push(*pid);
            sum += cpu.total_s();
        }
    }
    sum
}

/// CPU seconds of all threads that a process has, by their own clocks: to a microsecond, without threads that have ended.
pub fn threads_cpu_s(process: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let clocks =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    let spent = clocks.filter_map(|clock| clock.split(' ').next()?.parse::<f64>().ok());
    spent.sum::<f64>() / 1e9
}

/// The CPU time of this thread so far.
pub fn thread_cpu() -> Duration {
    cpu_of(ClockId::ThreadCPUTime)
}

/// The CPU time of all threads of this process so far.
pub fn process_cpu() -> Duration {
    cpu_of(ClockId::ProcessCPUTime)
}

fn cpu_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The peak memory of this process, bytes.
pub fn peak_rss_bytes() -> Option<u64> {
    memory("VmHWM:")
}

/// The memory of this process, bytes.
pub fn rss_bytes() -> Option<u64> {
    memory("VmRSS:")
}

fn memory(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(key))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_parsed_and_the_process_knows_what_it_uses() {
        let line = "42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 500 60 0 0 20 0 1 0 9 8 7";
        let hz = rustix::param::clock_ticks_per_second() as f64;
        let cpu = Cpu { user_s: 500.0 / hz, kernel_s: 60.0 / hz };
        assert_eq!(parse(line), Some((42, 7, cpu)));
        assert_eq!(parse("42 (a"), None);
        assert!(Cpu::of("self").is_some_and(|cpu| cpu.total_s() >= 0.0) && Cpu::of("x").is_none());
        let rss = rss_bytes();
        assert!(peak_rss_bytes() >= rss && rss > Some(1 << 20));
    }
}
