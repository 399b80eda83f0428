//! The resource usage of this process, as the operating system reports it.

/// Ticks per second of the times in `/proc/self/stat`: 100 on every Linux that Rust's standard
/// library supports, whatever the kernel's own clock rate.
const USER_HZ: f64 = 100.0;

/// Resource usage; `None` where the operating system does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// CPU time since the start, in seconds.
    pub cpu_s: Option<f64>,
    pub rss_bytes: Option<u64>,
    pub peak_rss_bytes: Option<u64>,
}

pub fn usage() -> Usage {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Usage {
        cpu_s: cpu_s(&stat),
        rss_bytes: status_bytes(&status, "VmRSS:"),
        peak_rss_bytes: status_bytes(&status, "VmHWM:"),
    }
}

/// User and system time from `/proc/self/stat`. The process name in brackets may contain brackets
/// and spaces, so fields are counted from the last bracket.
fn cpu_s(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    Some((user + system) as f64 / USER_HZ)
}

/// A size from `/proc/self/status`, which has it in kibibytes.
fn status_bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix(key))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_process_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        assert_eq!(cpu_s(stat), Some(3.0));
        assert_eq!(cpu_s(""), None);
        assert_eq!(cpu_s("42 (x) R 1"), None);
    }

    #[test]
    fn sizes_are_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(status_bytes(status, "VmHWM:"), Some(2_097_152));
        assert_eq!(status_bytes(status, "VmRSS:"), Some(1_048_576));
        assert_eq!(status_bytes(status, "VmSwap:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_usage_of_this_process_is_not_zero() {
        let u = usage();
        assert!(u.cpu_s.is_some());
        assert!(u.rss_bytes.unwrap() > 100_000 && u.peak_rss_bytes >= u.rss_bytes);
    }
}
