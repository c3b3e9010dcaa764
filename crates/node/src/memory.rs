//! How much memory the server may use.

use std::path::PathBuf;

/// Where the system does not say.
const UNKNOWN_BYTES: usize = 4 << 30;

/// The memory of the machine, or less if the process is in a control group that has less.
pub(crate) fn available_bytes() -> usize {
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total_of(&text));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = limit_files(&groups)
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    of_groups.chain(machine).min().unwrap_or(UNKNOWN_BYTES)
}

fn total_of(meminfo: &str) -> Option<usize> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Files that may hold a limit: of the process's group in both versions of control groups, and of the top one, which a
/// container sees as its own.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = vec![
        PathBuf::from("/sys/fs/cgroup/memory.max"),
        PathBuf::from("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ];
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            files.push(PathBuf::from(format!("/sys/fs/cgroup{path}/memory.max")));
        } else if controllers.split(',').any(|name| name == "memory") {
            let file = format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes");
            files.push(PathBuf::from(file));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says() {
        let text = "MemTotal:       24567890 kB\nMemFree:         1 kB\n";
        assert_eq!(total_of(text), Some(24_567_890 * 1024));
        assert_eq!(total_of("MemFree: 1 kB"), None);
        let groups = "4:memory:/attacks\n3:cpu,cpuacct:/\n0::/user.slice\nnonsense\n";
        let files = limit_files(groups);
        let has = |file: &str| files.contains(&PathBuf::from(file));
        assert!(has("/sys/fs/cgroup/memory/attacks/memory.limit_in_bytes"));
        assert!(has("/sys/fs/cgroup/user.slice/memory.max"));
        assert_eq!(files.len(), 4);
        assert!(available_bytes() > 64 << 20);
    }
}
