//! Source maps, from positions in a program to positions in its sources (spec 04 §9).
//!
//! A map is part of a program of any user. So it is parsed only when a trace needs it, within bounds, and kept for the last
//! programs only.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use parking_lot::Mutex;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::frame::Frame;

/// A larger map is ignored.
pub const TEXT_BYTES_MAX: usize = 32 << 20;
/// A map with more positions and lines is ignored.
const ENTRIES_MAX: usize = 2 << 20;
/// A map with more sources is ignored.
const SOURCES_MAX: usize = 1 << 16;
/// A source with a longer name, including the root, has none.
const NAME_BYTES_MAX: usize = 4096;
/// For the parsed maps of all programs; beyond it, the oldest are dropped.
const READ_BYTES_MAX: usize = 64 << 20;

const COMMENT: &str = "//# sourceMappingURL=";

pub struct SourceMap {
    /// JSON in Base64.
    encoded: Box<str>,
    read: Arc<Mutex<Read>>,
}

#[derive(Default)]
enum Read {
    #[default]
    NotYet,
    /// Invalid, or too large.
    Unusable,
    Map(Arc<Positions>),
}

impl SourceMap {
    /// The program without its map, and the map in its `sourceMappingURL` comment, if that is an inline data URL.
    pub fn split(program: &str) -> (&str, Option<SourceMap>) {
        let Some(at) = program.rfind(COMMENT) else {
            return (program, None);
        };
        let rest = &program[at + COMMENT.len()..];
        let url = rest.lines().next().unwrap_or_default().trim();
        let map = data_of_url(url).and_then(SourceMap::new);
        // The comment means nothing to the engine and may be most of the program. It is removed where it is the end of the program
        // and certainly a comment: no string or template that began before could end in it.
        let is_last = rest.trim_end().len() <= url.len();
        let is_own_line = program[..at].ends_with('\n') || at == 0;
        match data_of_url(url).is_some_and(|data| data.bytes().all(is_base64)) {
            true if is_last && is_own_line => (&program[..at], map),
            _ => (program, map),
        }
    }

    fn new(encoded: &str) -> Option<SourceMap> {
        if encoded.len() > TEXT_BYTES_MAX {
            tracing::warn!(
                bytes = encoded.len(),
                bytes_max = TEXT_BYTES_MAX,
                "the source map of a module is too large: its stack traces show positions in the bundle"
            );
            return None;
        }
        Some(SourceMap {
            encoded: encoded.into(),
            read: Arc::default(),
        })
    }

    /// Replaces scripts and positions of the program by those of its sources. Positions that the map does not know stay.
    pub fn apply(&self, frames: &mut [Frame]) {
        if !frames.iter().any(is_of_program) {
            return;
        }
        let Some(positions) = self.positions() else {
            return;
        };
        for frame in frames.iter_mut().filter(|frame| is_of_program(frame)) {
            let column = frame.column.saturating_sub(1);
            if let Some((source, line, column)) = positions.find(frame.line - 1, column) {
                frame.script = Some(source);
                frame.line = line.saturating_add(1);
                frame.column = column.saturating_add(1);
            }
        }
    }

    fn positions(&self) -> Option<Arc<Positions>> {
        let mut read = self.read.lock();
        match &*read {
            Read::Map(positions) => return Some(positions.clone()),
            Read::Unusable => return None,
            Read::NotYet => {}
        }
        let Some(positions) = Positions::read(&self.encoded).map(Arc::new) else {
            tracing::info!("the source map of a module is broken or too large and not used");
            *read = Read::Unusable;
            return None;
        };
        *read = Read::Map(positions.clone());
        // Others may be dropped now, which takes their locks.
        drop(read);
        keep(&self.read, positions.bytes());
        Some(positions)
    }
}

fn is_of_program(frame: &Frame) -> bool {
    frame.script.as_deref() == Some(crate::messages::RESOURCE_NAME) && frame.line > 0
}

/// The data behind `;base64,` in a data URL of JSON.
fn data_of_url(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("data:application/json")?;
    let (parameters, data) = rest.split_once(";base64,")?;
    matches!(parameters, "" | ";charset=utf-8" | ";charset=utf8").then_some(data)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The parsed maps, oldest first, with their sizes.
static KEPT: Mutex<VecDeque<(Weak<Mutex<Read>>, usize)>> = Mutex::new(VecDeque::new());

/// Notes a parsed map, and drops the oldest ones if all are too large.
fn keep(map: &Arc<Mutex<Read>>, bytes: usize) {
    let mut forgotten = Vec::new();
    {
        let mut kept = KEPT.lock();
        kept.retain(|(map, _)| map.strong_count() > 0);
        kept.push_back((Arc::downgrade(map), bytes));
        let mut total: usize = kept.iter().map(|(_, bytes)| bytes).sum();
        while total > READ_BYTES_MAX && kept.len() > 1 {
            let (map, bytes) = kept.pop_front().expect("there are several");
            total -= bytes;
            forgotten.push(map);
        }
    }
    for map in forgotten.iter().filter_map(Weak::upgrade) {
        *map.lock() = Read::NotYet;
    }
}

/// For generated code.
const NO_SOURCE: u32 = u32::MAX;

/// A position of the program and its source. All count from 0.
#[derive(Clone, Copy)]
struct Segment {
    column: u32,
    source: u32,
    source_line: u32,
    source_column: u32,
}

/// A parsed map.
struct Positions {
    /// Before the names of the sources.
    root: Box<str>,
    sources: Vec<Box<str>>,
    /// The first segment of each line.
    lines: Vec<u32>,
    /// In the order of the program; within a line by column.
    segments: Vec<Segment>,
}

/// Other keys (names, contents of sources) are skipped.
#[derive(Deserialize)]
struct RawMap<'a> {
    #[serde(borrow, default)]
    sources: Sources<'a>,
    #[serde(rename = "sourceRoot", borrow, default)]
    source_root: Option<Cow<'a, str>>,
    #[serde(borrow)]
    mappings: Cow<'a, str>,
}

impl Positions {
    fn read(encoded: &str) -> Option<Positions> {
        Self::read_json(&STANDARD.decode(encoded).ok()?)
    }

    fn read_json(json: &[u8]) -> Option<Positions> {
        let raw: RawMap<'_> = serde_json::from_slice(json).ok()?;
        if raw.sources.0.len() > SOURCES_MAX {
            return None;
        }
        let separators = raw.mappings.bytes().filter(|b| matches!(b, b',' | b';'));
        if separators.count() >= ENTRIES_MAX {
            return None;
        }
        let root = raw.source_root.as_deref().unwrap_or_default();
        if root.len() > NAME_BYTES_MAX {
            return None;
        }
        let mut positions = Positions {
            root: root.strip_suffix('/').unwrap_or(root).into(),
            sources: raw
                .sources
                .0
                .iter()
                .map(|name| name.as_ref().into())
                .collect(),
            lines: Vec::new(),
            segments: Vec::new(),
        };
        positions.read_mappings(&raw.mappings)?;
        positions.lines.shrink_to_fit();
        positions.segments.shrink_to_fit();
        Some(positions)
    }

    fn read_mappings(&mut self, mappings: &str) -> Option<()> {
        // Each segment has the differences to the one before, across lines.
        let mut last = [0_i64; 3];
        for line in mappings.split(';') {
            let start = self.segments.len();
            self.lines.push(start as u32);
            let mut column = 0_i64;
            for segment in line.split(',').filter(|segment| !segment.is_empty()) {
                let mut values = [0_i64; 5];
                let count = read_values(segment, &mut values)?;
                column += values[0];
                let mut source = NO_SOURCE;
                if count >= 4 {
                    for (last, difference) in last.iter_mut().zip(&values[1..4]) {
                        *last += difference;
                    }
                    source = u32::try_from(last[0]).ok()?;
                }
                self.segments.push(Segment {
                    column: u32::try_from(column).ok()?,
                    source,
                    source_line: u32::try_from(last[1]).ok()?,
                    source_column: u32::try_from(last[2]).ok()?,
                });
            }
            let line = &mut self.segments[start..];
            if !line.is_sorted_by_key(|segment| segment.column) {
                line.sort_by_key(|segment| segment.column);
            }
        }
        Some(())
    }

    /// Source, line and column of a position.
    fn find(&self, line: u32, column: u32) -> Option<(String, u32, u32)> {
        let line = line as usize;
        let start = *self.lines.get(line)? as usize;
        let end = self
            .lines
            .get(line + 1)
            .map_or(self.segments.len(), |end| *end as usize);
        let segments = &self.segments[start..end];
        let behind = segments.partition_point(|segment| segment.column <= column);
        let segment = segments[..behind].last()?;
        let source = self.sources.get(segment.source as usize)?;
        if source.len() > NAME_BYTES_MAX {
            return None;
        }
        let source = join(&self.root, source);
        Some((source, segment.source_line, segment.source_column))
    }

    fn bytes(&self) -> usize {
        let sources = self.sources.iter().map(|source| source.len() + 16);
        sources.sum::<usize>()
            + self.lines.len() * size_of::<u32>()
            + self.segments.len() * size_of::<Segment>()
    }
}

/// A source's name below the map's root.
fn join(root: &str, source: &str) -> String {
    let is_absolute = ["/", "http:", "https:"]
        .iter()
        .any(|start| source.starts_with(start));
    match root {
        "" => source.to_owned(),
        _ if is_absolute => source.to_owned(),
        root => format!("{root}/{source}"),
    }
}

/// The numbers of one segment: Base64 digits of five bits, the lowest first, the sign in the lowest bit of all. `None` unless there
/// are 1, 4 or 5.
fn read_values(segment: &str, values: &mut [i64; 5]) -> Option<usize> {
    /// Differences are of 32-bit numbers.
    const SHIFT_MAX: u32 = 30;
    let (mut count, mut value, mut shift) = (0, 0_i64, 0);
    for byte in segment.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        if shift > SHIFT_MAX {
            return None;
        }
        value |= i64::from(digit & 31) << shift;
        if digit & 32 != 0 {
            shift += 5;
            continue;
        }
        let magnitude = value >> 1;
        *values.get_mut(count)? = match value & 1 {
            0 => magnitude,
            _ => -magnitude,
        };
        (count, value, shift) = (count + 1, 0, 0);
    }
    (shift == 0 && matches!(count, 1 | 4 | 5)).then_some(count)
}

/// The names of the sources; one more than allowed if there are too many.
#[derive(Default)]
struct Sources<'a>(Vec<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Sources<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Sources<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("names of sources")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Sources<'de>, A::Error> {
                let mut sources = Vec::new();
                while sources.len() <= SOURCES_MAX {
                    let Some(Name(name)) = names.next_element()? else {
                        return Ok(Sources(sources));
                    };
                    sources.push(name.unwrap_or_default());
                }
                while names.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Sources(sources))
            }
        }
        deserializer.deserialize_seq(Names)
    }
}

/// A source may have no name.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Option<Cow<'a, str>>);

/// Entry point for fuzzing (docs/fuzzing.md): any bytes are a map or none, in memory that is in proportion to them.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    if let Some(positions) = Positions::read_json(data) {
        assert!(positions.bytes() <= 16 * (data.len() + 1));
        for line in 0..=positions.lines.len().min(64) as u32 {
            for column in [0, 1, 80, u32::MAX] {
                let found = positions.find(line, column);
                assert!(found.is_none_or(|(source, _, _)| source.len() <= 2 * NAME_BYTES_MAX + 1));
            }
        }
    }
    let text = String::from_utf8_lossy(data);
    let (program, map) = SourceMap::split(&text);
    assert!(text.starts_with(program));
    let mut frames = [Frame {
        script: Some(crate::messages::RESOURCE_NAME.to_owned()),
        line: 1,
        column: 1,
        ..Frame::default()
    }];
    if let Some(map) = map {
        map.apply(&mut frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(json: &[u8]) -> String {
        let encoded = STANDARD.encode(json);
        format!("a;\nb;\n{COMMENT}data:application/json;charset=utf-8;base64,{encoded}\n")
    }

    fn frame(line: u32, column: u32) -> Frame {
        Frame {
            script: Some(crate::messages::RESOURCE_NAME.to_owned()),
            line,
            column,
            ..Frame::default()
        }
    }

    fn map_of(json: &[u8]) -> SourceMap {
        SourceMap::split(&program(json)).1.expect("a map")
    }

    fn mapped(map: &SourceMap, line: u32, column: u32) -> (String, u32, u32) {
        let mut frames = [frame(line, column)];
        map.apply(&mut frames);
        let [frame] = frames;
        (frame.script.unwrap(), frame.line, frame.column)
    }

    #[test]
    fn the_map_is_cut_off_where_it_is_the_end() {
        let text = program(b"{}");
        let (rest, map) = SourceMap::split(&text);
        assert_eq!(rest, "a;\nb;\n");
        assert!(map.is_some());
        for kept in [
            format!("{text}code();"),
            text.replace("b;\n//#", "b; //#"),
            "a;\n//# sourceMappingURL=x.map".to_owned(),
            "`\n//# sourceMappingURL=data:application/json;base64,AAAA`".to_owned(),
            "a;".to_owned(),
        ] {
            assert_eq!(SourceMap::split(&kept).0, kept);
        }
        assert!(SourceMap::split("a;\n//# sourceMappingURL=x.map")
            .1
            .is_none());
    }

    /// The published crate as the oracle, over maps that it wrote.
    #[test]
    fn positions_are_those_that_another_reader_finds() {
        let mut state = 7_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for _ in 0..50 {
            let mut builder = sourcemap::SourceMapBuilder::new(None);
            for line in 0..random(20) {
                let mut column = 0;
                for _ in 0..random(6) {
                    let source = ["src/a.ts", "src/b.ts", "c.ts"][random(3) as usize];
                    let name = (random(2) == 0).then_some("name");
                    let (to_line, to_column) = (random(90_000), random(300));
                    builder.add(line, column, to_line, to_column, Some(source), name, false);
                    column += 1 + random(40);
                }
            }
            if random(2) == 0 {
                builder.set_source_root(Some("root/"));
            }
            let oracle = builder.into_sourcemap();
            let mut json = Vec::new();
            oracle.to_writer(&mut json).unwrap();
            let oracle = sourcemap::SourceMap::from_slice(&json).unwrap();
            let map = map_of(&json);
            for _ in 0..200 {
                let (line, column) = (random(22), random(200));
                // Unlike the oracle, a position before the first one of its line is unknown.
                let token = oracle.lookup_token(line, column);
                let token = token.filter(|token| token.get_dst_line() == line);
                let expected = match token.and_then(|token| Some((token, token.get_source()?))) {
                    None => (
                        crate::messages::RESOURCE_NAME.to_owned(),
                        line + 1,
                        column + 1,
                    ),
                    Some((token, source)) => {
                        let (line, column) = token.get_src();
                        (source.to_owned(), line + 1, column + 1)
                    }
                };
                assert_eq!(mapped(&map, line + 1, column + 1), expected);
            }
        }
    }

    #[test]
    fn what_is_no_map_maps_nothing() {
        let unchanged = (crate::messages::RESOURCE_NAME.to_owned(), 1, 1);
        for json in [
            &b""[..],
            b"{}",
            b"[1]",
            b"{\"mappings\":5}",
            b"{\"mappings\":\"!\"}",
            b"{\"mappings\":\"AA\"}",
            b"{\"mappings\":\"AAAAAA\"}",
            b"{\"mappings\":\"gggggggggggggggg\"}",
            b"{\"mappings\":\"AADA\",\"sources\":[\"x\"]}",
            b"{\"mappings\":\"AAAA\"}",
            b"{\"mappings\":\"A\",\"sources\":[\"x\"]}",
            b"{\"sections\":[]}",
            b"{\"mappings\":\"AAAA\",\"sources\":7}",
        ] {
            let map = map_of(json);
            assert_eq!(
                mapped(&map, 1, 1),
                unchanged,
                "{}",
                String::from_utf8_lossy(json)
            );
        }
        let map = map_of(b"{\"mappings\":\"AAAA\",\"sources\":[null,\"x\"],\"names\":7,\"sourcesContent\":[[{}]]}");
        assert_eq!(mapped(&map, 1, 1), (String::new(), 1, 1));
        assert_eq!(mapped(&map, 0, 0), (unchanged.0, 0, 0));
        assert_eq!(mapped(&map, u32::MAX, u32::MAX).1, u32::MAX);
    }

    #[test]
    fn damaged_maps_are_read_or_not() {
        let whole = b"{\"version\":3,\"sources\":[\"a.ts\",null],\"sourceRoot\":\"r\",\"names\":[\"n\"],\"mappings\":\"AAAA,CCDAA;;AACA,A\"}";
        let mut state = 3_u32;
        for _ in 0..20_000 {
            let mut damaged = whole.to_vec();
            for _ in 0..3 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (state >> 8) as usize % damaged.len();
                damaged[at] = (state >> 24) as u8 & 0x7f;
            }
            fuzz(&damaged);
        }
        fuzz(whole);
        fuzz(program(whole).as_bytes());
    }

    #[test]
    fn large_maps_are_not_read() {
        let unchanged = (crate::messages::RESOURCE_NAME.to_owned(), 1, 1);
        let lines = ";".repeat(ENTRIES_MAX);
        let map =
            map_of(format!("{{\"mappings\":\"AAAA{lines}\",\"sources\":[\"x\"]}}").as_bytes());
        assert_eq!(mapped(&map, 1, 1), unchanged);
        let sources = "null,".repeat(SOURCES_MAX);
        let map =
            map_of(format!("{{\"mappings\":\"AAAA\",\"sources\":[{sources}\"x\"]}}").as_bytes());
        assert_eq!(mapped(&map, 1, 1), unchanged);
        let root = "r".repeat(NAME_BYTES_MAX + 1);
        let map = map_of(
            format!("{{\"mappings\":\"AAAA\",\"sources\":[\"x\"],\"sourceRoot\":\"{root}\"}}")
                .as_bytes(),
        );
        assert_eq!(mapped(&map, 1, 1), unchanged);
        let map = map_of(format!("{{\"mappings\":\"AAAA\",\"sources\":[\"{root}\"]}}").as_bytes());
        assert_eq!(mapped(&map, 1, 1), unchanged);
        let large = format!(
            "\n{COMMENT}data:application/json;base64,{}",
            "A".repeat(TEXT_BYTES_MAX + 4)
        );
        let (rest, map) = SourceMap::split(&large);
        assert!(map.is_none());
        assert_eq!(rest, "\n");
    }

    /// Only the last maps are kept, and one that was forgotten is read again.
    #[test]
    fn maps_that_were_read_are_bounded() {
        let segments = "AAAA,".repeat(1 << 20);
        let json = format!("{{\"mappings\":\"{segments}\",\"sources\":[\"x\"]}}");
        let maps: Vec<_> = (0..6).map(|_| map_of(json.as_bytes())).collect();
        let is_read = |map: &SourceMap| matches!(&*map.read.lock(), Read::Map(_));
        assert!(!is_read(&maps[0]), "nothing is read before it is needed");
        for map in &maps {
            assert_eq!(mapped(map, 1, 1).0, "x");
        }
        let kept = maps.iter().filter(|map| is_read(map)).count();
        assert!((1..=4).contains(&kept), "{kept} of 16 MiB each");
        assert!(is_read(&maps[5]) && !is_read(&maps[0]));
        assert_eq!(mapped(&maps[0], 1, 1).0, "x");
    }
}
