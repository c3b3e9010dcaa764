//! The text format of Prometheus.

use std::fmt::{Display, Formatter, Write as _};
use std::num::NonZero;

use lightcone_database::{HistogramSnapshot, BOUNDS_NS};

use super::sizes::{Sizes, BOUNDS_BYTES};

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

/// Families of one number each, which is not of a database.
macro_rules! numbers {
    ($text:expr; $( $kind:ident $name:literal $value:expr, $help:literal; )+) => {$(
        let value = [($crate::metrics::text::Labels::default(), $value)];
        $text.family($crate::metrics::text::Kind::$kind, $name, $help, value);
    )+};
}
pub(super) use numbers;

/// Families with one sample of each database.
macro_rules! families {
    ($text:expr, $databases:expr; $( $kind:ident $name:literal $labels:ident |$of:ident| $read:expr, $help:literal; )+) => {$(
        let samples = $databases.clone().map(|$of| ($of.$labels(), $read));
        $text.family($crate::metrics::text::Kind::$kind, $name, $help, samples);
    )+};
}
pub(super) use families;

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// What a family has for some labels.
pub(super) trait Sample {
    /// Where nothing was counted, there is no sample.
    fn is_empty(&self) -> bool {
        false
    }

    fn put(&self, text: &mut Text, name: &str, labels: Labels);
}

impl Sample for u64 {
    fn put(&self, text: &mut Text, name: &str, labels: Labels) {
        text.line(name, &labels, self);
    }
}

/// A count that is shown once there is something.
impl Sample for NonZero<u64> {
    fn put(&self, text: &mut Text, name: &str, labels: Labels) {
        text.line(name, &labels, self);
    }
}

/// What may be unknown.
impl<S: Sample> Sample for Option<S> {
    fn is_empty(&self) -> bool {
        self.as_ref().is_none_or(Sample::is_empty)
    }

    fn put(&self, text: &mut Text, name: &str, labels: Labels) {
        if let Some(sample) = self {
            sample.put(text, name, labels);
        }
    }
}

/// A number of nanoseconds as Prometheus has times: in seconds.
#[derive(Clone, Copy)]
pub(super) struct Seconds(pub u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        // The shortest text of the nearest float: 0.000001, 60.
        write!(f, "{}", self.0 as f64 / 1e9)
    }
}

impl Sample for Seconds {
    fn put(&self, text: &mut Text, name: &str, labels: Labels) {
        text.line(name, &labels, self);
    }
}

/// Times with some of their bounds.
pub(super) struct Times<'t> {
    times: &'t HistogramSnapshot,
    bounds: &'static [u64],
}

/// With all bounds that there are.
pub(super) fn all_times(times: &HistogramSnapshot) -> Times<'_> {
    let bounds = &BOUNDS_NS;
    Times { times, bounds }
}

/// With few bounds, for what there is much of.
pub(super) fn few_times(times: &HistogramSnapshot) -> Times<'_> {
    let bounds = &FEW_BOUNDS_NS;
    Times { times, bounds }
}

impl Sample for Times<'_> {
    fn is_empty(&self) -> bool {
        self.times.count() == 0
    }

    fn put(&self, text: &mut Text, name: &str, labels: Labels) {
        let times = self.times;
        let shown = |bound: &u64| self.bounds.contains(bound).then_some(Seconds(*bound));
        let buckets = BOUNDS_NS.iter().map(shown).zip(times.buckets);
        text.histogram(name, &labels, buckets, times.count(), Seconds(times.sum_ns));
    }
}

/// In bytes.
impl Sample for &Sizes {
    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn put(&self, text: &mut Text, name: &str, labels: Labels) {
        let counts = self.buckets();
        let buckets = BOUNDS_BYTES.into_iter().map(Some).zip(counts);
        text.histogram(name, &labels, buckets, counts.iter().sum(), self.bytes());
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

    fn line(&mut self, name: &str, labels: &Labels, value: impl Display) {
        let _ = match labels.0.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{}}} {value}", labels.0),
        };
    }

    /// One family. Without samples there is none.
    pub fn family<S: Sample>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, S)>,
    ) {
        let samples = samples.into_iter();
        let mut samples = samples.filter(|(_, sample)| !sample.is_empty()).peekable();
        if samples.peek().is_some() {
            let kind = kind.name();
            let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
        for (labels, sample) in samples {
            sample.put(self, name, labels);
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
                self.line(&bucket, &labels.clone().and("le", bound), within);
            }
        }
        self.line(&bucket, &labels.clone().and("le", "+Inf"), count);
        self.line(&format!("{name}_sum"), labels, sum);
        self.line(&format!("{name}_count"), labels, count);
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
        text.family(Kind::Counter, "calls", "Calls.", [(labels.clone(), 7)]);
        text.family::<u64>(Kind::Gauge, "nothing", "Nothing.", []);
        let mut times = HistogramSnapshot::default();
        let none = times.clone();
        (times.buckets[4], times.buckets[23], times.sum_ns) = (2, 1, 61_000_020_000);
        let some = [(Labels::of("db", 1), &times), (Labels::of("db", 2), &none)];
        let some = some.map(|(labels, times)| (labels, few_times(times)));
        text.family(Kind::Histogram, "took", "Times.", some);
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
