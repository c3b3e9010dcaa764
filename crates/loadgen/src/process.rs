//! CPU time and memory of a process, and what the disk below its files writes. From `/proc` and `/sys`.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// The unit of block device statistics, whatever the device's sector size.
const SECTOR_BYTES: u64 = 512;

/// Since the start of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system CPU time of all threads; the kernel counts it in steps of mostly 10 ms.
    pub cpu: Duration,
    /// Bytes that the block device below the process's files has written, for any process; `None`
    /// where there is no such device (memory, overlays) or the files are not ours to see.
    /// `/proc/<pid>/io` counts whole folios, many times of what reaches the device.
    pub device_written_bytes: Option<u64>,
    pub resident_bytes: u64,
}

impl Usage {
    /// An error names the file that is missing or odd.
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
            device_written_bytes: device_of_files(pid).and_then(device_written_bytes),
            resident_bytes: pages * rustix::param::page_size() as u64,
        })
    }
}

/// The CPU time of each thread, exact to the nanosecond.
#[derive(Clone, Debug, Default)]
pub struct Threads(BTreeMap<u32, (String, Duration)>);

impl Threads {
    /// An error names the file that is missing or odd.
    pub fn of(pid: u32) -> Result<Self, String> {
        let directory = format!("/proc/{pid}/task");
        let tasks = std::fs::read_dir(&directory);
        let tasks = tasks.map_err(|error| format!("{directory}: {error}"))?;
        let mut threads = BTreeMap::new();
        for task in tasks.flatten() {
            // A thread that has just ended is left out.
            let read = |file: &str| std::fs::read_to_string(task.path().join(file)).ok();
            let number = task.file_name().to_str().and_then(|name| name.parse().ok());
            let (Some(number), Some(name), Some(times)) = (number, read("comm"), read("schedstat"))
            else {
                continue;
            };
            let run_ns = times.split_ascii_whitespace().next();
            let run_ns = run_ns.and_then(|ns| ns.parse().ok());
            let run_ns = run_ns
                .ok_or_else(|| format!("{directory}/{number}/schedstat has an unknown form"))?;
            let cpu = Duration::from_nanos(run_ns);
            threads.insert(number, (name.trim_end().to_owned(), cpu));
        }
        Ok(Self(threads))
    }

    /// Used since `before`, by thread name, the busiest first.
    pub fn since(&self, before: &Threads) -> Vec<(String, Duration)> {
        let mut by_name = BTreeMap::<&str, Duration>::new();
        for (number, (name, cpu)) in &self.0 {
            let known = before.0.get(number).map_or(Duration::ZERO, |(_, cpu)| *cpu);
            *by_name.entry(name).or_default() += cpu.saturating_sub(known);
        }
        let all = by_name.into_iter();
        let mut all: Vec<_> = all.map(|(name, cpu)| (name.to_owned(), cpu)).collect();
        all.sort_by_key(|(_, cpu)| std::cmp::Reverse(*cpu));
        all
    }
}

/// User ticks, system ticks and resident pages. The second field is the program's name in
/// brackets, which may itself hold spaces and brackets.
fn parse_stat(text: &str) -> Option<(u64, u64, u64)> {
    let fields = text.get(text.rfind(')')? + 1..)?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // The state, field 3 of the manual page, is the first of these.
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some((field(14)?, field(15)?, field(24)?))
}

/// The device of most regular files that a process has open: a server's are those of its data.
fn device_of_files(pid: u32) -> Option<u64> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let files = files.filter_map(|entry| std::fs::metadata(entry.path()).ok());
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for file in files.filter(|file| file.is_file()) {
        *counts.entry(file.dev()).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(device, count)| (count, device));
    counts.max().map(|(_, device)| device)
}

fn device_written_bytes(device: u64) -> Option<u64> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let path = format!("/sys/dev/block/{major}:{minor}/stat");
    parse_sectors_written(&std::fs::read_to_string(path).ok()?).map(|count| count * SECTOR_BYTES)
}

/// Field 7 of the kernel's statistics of a block device.
fn parse_sectors_written(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(6)?.parse().ok()
}

/// CPU time of this process.
pub fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let nanos = time.tv_nsec.unsigned_abs() as u32;
    Duration::new(time.tv_sec.unsigned_abs(), nanos)
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
    fn statistics_of_a_device() {
        let line = "  1  2  3  4  5  6  4096  8  9  10  11\n";
        assert_eq!(parse_sectors_written(line), Some(4096));
        assert_eq!(parse_sectors_written("1 2 3"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn own_process() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident_bytes > 0);
        assert!(own_cpu() > Duration::ZERO);
        let threads = Threads::of(std::process::id()).unwrap();
        assert!(threads.since(&Threads::default())[0].1 > Duration::ZERO);
        assert!(Usage::of(u32::MAX).is_err());
    }
}
