//! The text format of Prometheus.

use std::fmt::{Display, Formatter, Write as _};

use super::sizes::{Sizes, BOUNDS_BYTES};
use crate::database::{HistogramSnapshot, BOUNDS_NS};

/// Bounds of the times of single functions: each 1 and 5, where the writer's own have a 2 too. Each bound is a series.
const FEW_BOUNDS_NS: [u64; 13] = [
    10_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// A number of nanoseconds as Prometheus has times: in seconds.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        // The shortest text of the nearest float: 0.000001, 60.
        write!(f, "{}", self.0 as f64 / 1e9)
    }
}

/// Families of one number each, which is not of a database.
macro_rules! numbers {
    ($text:expr; $( $kind:ident $name:literal $value:expr, $help:literal; )+) => {$(
        let value = std::iter::once(($crate::metrics::text::Labels::default(), $value));
        $text.family($crate::metrics::text::Kind::$kind, $name, $help, value);
    )+};
}
pub(super) use numbers;

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        }
    }
}

/// Labels with their values, in the order in which they are written.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(String);

impl Labels {
    pub fn of(name: &str, value: impl Display) -> Labels {
        Labels::default().and(name, value)
    }

    pub fn and(mut self, name: &str, value: impl Display) -> Labels {
        let comma = if self.0.is_empty() { "" } else { "," };
        let _ = write!(self.0, "{comma}{name}=\"");
        let value = value.to_string();
        // A name of a module's is an identifier; this holds for whatever comes.
        for character in value.chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        self.0.push('"');
        self
    }
}

/// An exposition under construction.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    pub fn into_string(self) -> String {
        self.0
    }

    /// The head of a family, if it has samples.
    fn begin<T>(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        samples: &mut std::iter::Peekable<impl Iterator<Item = T>>,
    ) {
        if samples.peek().is_some() {
            let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
    }

    fn sample(&mut self, name: &str, labels: &Labels, value: impl Display) {
        let _ = match labels.0.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{}}} {value}", labels.0),
        };
    }

    /// One family. Without samples there is none.
    pub fn family(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (Labels, u64)>,
    ) {
        let mut samples = samples.peekable();
        self.begin(kind.name(), name, help, &mut samples);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    /// A family of which each sample is a time in nanoseconds.
    pub fn seconds(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (Labels, u64)>,
    ) {
        let mut samples = samples.peekable();
        self.begin(kind.name(), name, help, &mut samples);
        for (labels, nanos) in samples {
            self.sample(name, &labels, Seconds(nanos));
        }
    }

    /// A family of times, with all bounds that there are. Where nothing was counted, there is no sample.
    pub fn times<'t>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (Labels, &'t HistogramSnapshot)>,
    ) {
        self.histograms(&BOUNDS_NS, name, help, samples);
    }

    /// The same with few bounds, for what there is much of.
    pub fn few_times<'t>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (Labels, &'t HistogramSnapshot)>,
    ) {
        self.histograms(&FEW_BOUNDS_NS, name, help, samples);
    }

    /// A family of sizes in bytes. Where nothing was counted, there is no sample.
    pub fn sizes<'t>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (Labels, &'t Sizes)>,
    ) {
        let mut samples = samples.filter(|(_, sizes)| sizes.count() > 0).peekable();
        self.begin("histogram", name, help, &mut samples);
        for (labels, sizes) in samples {
            let counts = sizes.buckets();
            let buckets = BOUNDS_BYTES.into_iter().map(Some).zip(counts);
            self.histogram(name, &labels, buckets, counts.iter().sum(), sizes.bytes());
        }
    }

    fn histograms<'t>(
        &mut self,
        bounds: &[u64],
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (Labels, &'t HistogramSnapshot)>,
    ) {
        let mut samples = samples.filter(|(_, times)| times.count() > 0).peekable();
        self.begin("histogram", name, help, &mut samples);
        for (labels, times) in samples {
            let shown = |bound: &u64| bounds.contains(bound).then_some(Seconds(*bound));
            let buckets = BOUNDS_NS.iter().map(shown).zip(times.buckets);
            self.histogram(name, &labels, buckets, times.count(), Seconds(times.sum_ns));
        }
    }

    /// The samples of one histogram: a bucket without a bound is added to the next one.
    fn histogram<B: Display>(
        &mut self,
        name: &str,
        labels: &Labels,
        buckets: impl Iterator<Item = (Option<B>, u64)>,
        count: u64,
        sum: impl Display,
    ) {
        let bucket = format!("{name}_bucket");
        let mut within = 0;
        for (bound, more) in buckets {
            within += more;
            if let Some(bound) = bound {
                self.sample(&bucket, &labels.clone().and("le", bound), within);
            }
        }
        self.sample(&bucket, &labels.clone().and("le", "+Inf"), count);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bounds_are_bounds() {
        for bound in FEW_BOUNDS_NS {
            assert!(BOUNDS_NS.contains(&bound), "{bound}");
        }
    }

    #[test]
    fn what_prometheus_reads() {
        let mut text = Text::default();
        let labels = Labels::of("db", "a\"b\\c\nd").and("n", 1);
        let counted = std::iter::once((labels.clone(), 7));
        text.family(Kind::Counter, "calls", "Calls.", counted);
        text.family(Kind::Gauge, "nothing", "Nothing.", std::iter::empty());
        let mut times = HistogramSnapshot::default();
        let none = times.clone();
        (times.buckets[4], times.buckets[23], times.sum_ns) = (2, 1, 61_000_020_000);
        let some = [(Labels::of("db", 1), &times), (Labels::of("db", 2), &none)];
        text.few_times("took", "Times.", some.into_iter());
        let text = text.into_string();
        assert!(text.starts_with(
            "# HELP calls Calls.\n# TYPE calls counter\ncalls{db=\"a\\\"b\\\\c\\nd\",n=\"1\"} 7\n# HELP took"
        ), "{text}");
        for line in [
            "took_bucket{db=\"1\",le=\"0.00001\"} 0\n",
            "took_bucket{db=\"1\",le=\"0.00005\"} 2\n",
            "took_bucket{db=\"1\",le=\"10\"} 2\n",
            "took_bucket{db=\"1\",le=\"+Inf\"} 3\n",
            "took_sum{db=\"1\"} 61.00002\n",
            "took_count{db=\"1\"} 3\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("db=\"2\""), "{text}");
    }
}
