//! Numbers as people read them.

/// `1234`, `12.3k`, `4.56M`.
pub fn count(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T"])
}

/// `512 B`, `1.5 KiB`.
pub fn bytes(number: f64) -> String {
    scaled(number, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

/// Microseconds, in the unit that makes them short.
pub fn micros(number: u64) -> String {
    match number {
        0..1000 => format!("{number} us"),
        1000..1_000_000 => format!("{} ms", short(number as f64 / 1e3)),
        _ => format!("{} s", short(number as f64 / 1e6)),
    }
}

fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let mut scaled = number.max(0.0);
    let mut unit = 0;
    while scaled >= step * 0.9995 && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    format!("{}{}", short(scaled), units[unit])
}

/// Three digits, and no more than there are.
fn short(number: f64) -> String {
    let text = match number {
        n if n >= 99.95 => format!("{n:.0}"),
        n if n >= 9.995 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        for (number, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (999.0, "999"),
            (999.9, "1k"),
            (12_345.0, "12.3k"),
            (7e6, "7M"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!(micros(999), "999 us");
        assert_eq!(micros(1500), "1.5 ms");
        assert_eq!(micros(60_000_000), "60 s");
    }
}
