//! Measures what `fdatasync` costs after a write into a file that was prepared in different ways.
//! `docs/on-disk-formats.md` holds results.
//!
//! `cargo run --release -p lightcone-log --example sync_latency -- <directory on the disk in question>`

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{fallocate, FallocateFlags};

const FILE_BYTES: u64 = 64 << 20;
const WRITES_MAX: usize = 2000;

#[derive(Clone, Copy, Debug)]
enum Preparation {
    None,
    Fallocate,
    Zeros,
}

fn prepare(path: &Path, preparation: Preparation) -> std::io::Result<File> {
    let _ = fs::remove_file(path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    match preparation {
        Preparation::None => {}
        Preparation::Fallocate => fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES)?,
        Preparation::Zeros => {
            let zeros = vec![0; 1 << 20];
            for position in (0..FILE_BYTES).step_by(zeros.len()) {
                file.write_all_at(&zeros, position)?;
            }
        }
    }
    file.sync_all()?;
    Ok(file)
}

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let path = Path::new(&directory).join("sync-latency.tmp");
    println!("prepared    write bytes   writes   p50 us   p95 us   p99 us   max us");
    for round in 0..3 {
        for bytes in [128usize, 4096, 65_536, 1 << 20] {
            for preparation in [
                Preparation::None,
                Preparation::Fallocate,
                Preparation::Zeros,
            ] {
                let file = prepare(&path, preparation)?;
                // Varied contents, so that no layer below can make them small.
                let mut random = round as u64 + 1;
                let payload: Vec<u8> = std::iter::repeat_with(|| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (random >> 56) as u8
                })
                .take(bytes)
                .collect();
                let writes = WRITES_MAX.min((FILE_BYTES - 4096) as usize / bytes);
                let mut micros: Vec<f64> = (0..writes)
                    .map(|number| {
                        let start = Instant::now();
                        file.write_all_at(&payload, 4096 + (number * bytes) as u64)?;
                        file.sync_data()?;
                        Ok(start.elapsed().as_secs_f64() * 1e6)
                    })
                    .collect::<std::io::Result<_>>()?;
                micros.sort_by(f64::total_cmp);
                let at = |part: f64| micros[((micros.len() - 1) as f64 * part) as usize];
                println!(
                    "{:10} {bytes:12} {writes:8} {:8.0} {:8.0} {:8.0} {:8.0}",
                    format!("{preparation:?}"),
                    at(0.5),
                    at(0.95),
                    at(0.99),
                    at(1.0)
                );
            }
        }
    }
    fs::remove_file(&path)
}
