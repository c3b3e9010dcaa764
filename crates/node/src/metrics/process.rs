//! Metrics of the process, under the names that all programs use. Read from `/proc`: elsewhere there is less.

use std::time::{SystemTime, UNIX_EPOCH};

use super::text::{numbers, Seconds, Text};

/// What `/proc/self/stat` says.
#[derive(Debug, Default, PartialEq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    /// After the machine began.
    started_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

pub(super) fn put(text: &mut Text) {
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    numbers! { text;
        Gauge "process_open_fds" open_files(),
            "Open file descriptors.";
        Gauge "process_max_fds" limits.current,
            "File descriptors that the process may have.";
    }
    let stat = std::fs::read_to_string("/proc/self/stat");
    let Some(stat) = stat.ok().and_then(|stat| parse(&stat)) else {
        return;
    };
    let page_bytes = rustix::param::page_size() as u64;
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let nanos = |count: u64| count.saturating_mul(1_000_000_000 / ticks);
    numbers! { text;
        Gauge "process_resident_memory_bytes" stat.resident_pages * page_bytes,
            "Memory that the process has, in bytes.";
        Gauge "process_virtual_memory_bytes" stat.virtual_bytes,
            "Addresses that the process has, in bytes; most of them stand for no memory.";
        Gauge "process_threads" stat.threads,
            "Threads of the process.";
        Counter "process_cpu_seconds_total" Seconds(nanos(stat.cpu_ticks)),
            "Time of processors that the process has used.";
        Gauge "process_start_time_seconds" started_at(nanos(stat.started_ticks)).map(Seconds),
            "When the process began, in seconds since 1970.";
    }
}

/// In nanoseconds since 1970, to the second: the clocks are not read at one moment.
fn started_at(after_boot_ns: u64) -> Option<u64> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let seconds = now.as_secs_f64() - uptime + after_boot_ns as f64 / 1e9;
    Some(seconds.round() as u64 * 1_000_000_000)
}

fn open_files() -> Option<u64> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?;
    // One is that of the directory itself.
    Some((entries.count() as u64).saturating_sub(1))
}

/// The second field is the program's name, in which there may be anything.
fn parse(stat: &str) -> Option<Stat> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Numbered as in proc(5), where this begins with the third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        cpu_ticks: field(14)? + field(15)?,
        threads: field(20)?,
        started_ticks: field(22)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_they_are() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 12 0 3456 1000000 77 184467 1 1\n";
        let expected = Stat {
            cpu_ticks: 300,
            threads: 12,
            started_ticks: 3456,
            virtual_bytes: 1_000_000,
            resident_pages: 77,
        };
        assert_eq!(parse(text), Some(expected));
        for bad in ["", "7 (x)", "7 (x) S 1", "7 x S 1 2 3"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
