//! How much memory the server may use.

use std::path::{Path, PathBuf};

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

/// What of it is free now, or would be if the system let go of copies of files.
pub(crate) fn free_bytes() -> usize {
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| bytes_of(&text, "MemAvailable:"));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = limit_files(&groups)
        .into_iter()
        .filter_map(|file| free_in_group(&file));
    of_groups.chain(machine).min().unwrap_or(UNKNOWN_BYTES)
}

/// The same of the control group with this limit.
fn free_in_group(limit_file: &Path) -> Option<usize> {
    let read = |name: &str| std::fs::read_to_string(limit_file.with_file_name(name)).ok();
    let number = |text: String| text.trim().parse::<usize>().ok();
    let limit = number(std::fs::read_to_string(limit_file).ok()?)?;
    let used = read("memory.current").or_else(|| read("memory.usage_in_bytes"));
    let used = used.and_then(number)?;
    let kept = read("memory.stat").map_or(0, |text| files_of(&text));
    Some(limit.saturating_sub(used.saturating_sub(kept)))
}

/// Copies of files, in the statistics of a control group of either version.
fn files_of(stat: &str) -> usize {
    let of = |line: &str| {
        let (name, bytes) = line.split_once(' ')?;
        let is_file = matches!(name, "inactive_file" | "active_file");
        is_file.then(|| bytes.trim().parse::<usize>().ok())?
    };
    stat.lines().filter_map(of).sum()
}

fn total_of(meminfo: &str) -> Option<usize> {
    bytes_of(meminfo, "MemTotal:")
}

fn bytes_of(meminfo: &str, name: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
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
    fn what_is_free_in_a_group() {
        let group = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            std::fs::write(group.path().join(name), text).expect("written");
        };
        let limit = group.path().join("memory.max");
        assert_eq!(free_in_group(&limit), None);
        write("memory.max", "1000\n");
        assert_eq!(free_in_group(&limit), None, "what is used is not known");
        write("memory.current", "900\n");
        assert_eq!(free_in_group(&limit), Some(100));
        write(
            "memory.stat",
            "anon 300\nfile 600\ninactive_file 250\nactive_file 350\n",
        );
        assert_eq!(free_in_group(&limit), Some(700));
        write("memory.current", "2000\n");
        assert_eq!(free_in_group(&limit), Some(0));
        write("memory.max", "max\n");
        assert_eq!(free_in_group(&limit), None, "there is no limit");
    }

    #[test]
    fn what_the_system_says() {
        let text = "MemTotal:       24567890 kB\nMemFree:         1 kB\n";
        assert_eq!(total_of(text), Some(24_567_890 * 1024));
        assert_eq!(total_of("MemFree: 1 kB"), None);
        assert_eq!(bytes_of(text, "MemFree:"), Some(1024));
        let groups = "4:memory:/attacks\n3:cpu,cpuacct:/\n0::/user.slice\nnonsense\n";
        let files = limit_files(groups);
        let has = |file: &str| files.contains(&PathBuf::from(file));
        assert!(has("/sys/fs/cgroup/memory/attacks/memory.limit_in_bytes"));
        assert!(has("/sys/fs/cgroup/user.slice/memory.max"));
        assert_eq!(files.len(), 4);
        assert!(available_bytes() > 64 << 20);
        assert!((1 << 20..available_bytes()).contains(&free_bytes()));
    }
}
