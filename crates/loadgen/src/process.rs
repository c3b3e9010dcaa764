//! CPU time, memory and disk writes of a process, from `/proc`.

use std::time::Duration;

/// What a process has used since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system CPU time of all threads; the kernel counts it in steps of mostly 10 ms.
    pub cpu: Duration,
    /// Bytes the process caused to be written to storage; `None` if not ours to see.
    pub storage_write_bytes: Option<u64>,
    /// Memory in use now.
    pub resident_bytes: u64,
}

impl Usage {
    /// Of the process with this id. The text of an error says which file is missing or odd.
    pub fn of(pid: u32) -> Result<Self, String> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
        };
        let stat = read("stat")?;
        let (user, system, pages) =
            parse_stat(&stat).ok_or_else(|| format!("/proc/{pid}/stat has an unknown form"))?;
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        Ok(Self {
            cpu: Duration::from_secs_f64((user + system) as f64 / ticks_per_second),
            storage_write_bytes: read("io").ok().as_deref().and_then(parse_write_bytes),
            resident_bytes: pages * rustix::param::page_size() as u64,
        })
    }
}

/// User ticks, system ticks and resident pages. The second field is the program's name in
/// brackets, which may itself hold spaces and brackets.
fn parse_stat(text: &str) -> Option<(u64, u64, u64)> {
    let fields: Vec<&str> = text
        .get(text.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .collect();
    // The state, field 3 of the manual page, is the first of these.
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some((field(14)?, field(15)?, field(24)?))
}

fn parse_write_bytes(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("write_bytes:"))?
        .trim()
        .parse()
        .ok()
}

/// CPU time of this process.
pub fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_with_an_odd_name() {
        let line = "12 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 111 222 13 14 15 16 17 18 19 20 333 0";
        assert_eq!(parse_stat(line), Some((111, 222, 333)));
        assert_eq!(parse_stat("12 (a) S 1"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn write_bytes_line() {
        assert_eq!(
            parse_write_bytes("rchar: 1\nwrite_bytes: 4096\n"),
            Some(4096)
        );
        assert_eq!(parse_write_bytes("rchar: 1\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn own_process() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident_bytes > 0);
        assert!(own_cpu() > Duration::ZERO);
        assert!(Usage::of(u32::MAX).is_err());
    }
}
