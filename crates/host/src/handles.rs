//! The handles of a call (spec 03 §7): byte sources, byte sinks, console timers. Row iterators have a file of their own.
//!
//! They reuse their buffers, so that a warm instance makes and drops handles without allocating. The buffers count in the
//! account of the instance.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_accounts::{Account, Counted, Exceeded, Kind, Reservation};

use crate::{AbiError, Errno, HostTrap, LimitKind};

/// Whether a byte source still has content after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadProgress {
    /// The host call answers 0.
    More,
    /// The source is gone; the host call answers -1.
    Finished,
}

/// Content that the host passes to the module. Ids count up from 1 within a call and are never reused.
pub(crate) struct ByteSources {
    /// From id `first + 1` on. Finished ones at the front are dropped.
    window: VecDeque<Source>,
    /// Ids that were dropped from the front.
    first: u32,
    /// Buffers of finished sources.
    spare: Vec<Buffer>,
    /// Bytes of unfinished sources.
    held_bytes: usize,
    account: Arc<Account>,
    /// The bytes of the list itself.
    list: Reservation,
}

/// A buffer in the account of the instance.
type Buffer = Counted<Vec<u8>>;

struct Source {
    bytes: Buffer,
    position: usize,
    /// Its content has not been read to its end.
    is_open: bool,
}

/// Spare buffers of sources, and their largest size.
const SPARE_SOURCES_MAX: usize = 4;
const SPARE_SOURCE_BYTES_MAX: usize = 64 << 10;

impl ByteSources {
    pub(crate) fn new(account: &Arc<Account>) -> ByteSources {
        ByteSources {
            window: VecDeque::new(),
            first: 0,
            spare: Vec::new(),
            held_bytes: 0,
            account: account.clone(),
            list: Reservation::none(account),
        }
    }

    /// An empty content has no source: the handle is 0.
    #[inline]
    pub(crate) fn open(&mut self, content: &[u8], sources_max: usize) -> Result<u32, HostTrap> {
        if content.is_empty() {
            return Ok(0);
        }
        self.open_any(content, sources_max)
    }

    /// As `open`, but an empty content has a source too, which ends with its first read.
    #[inline]
    pub(crate) fn open_any(&mut self, content: &[u8], sources_max: usize) -> Result<u32, HostTrap> {
        let spare = self.spare.pop();
        let mut bytes = spare.unwrap_or_else(|| Counted::empty(&self.account));
        bytes.extend(content).map_err(trap_of)?;
        self.push(bytes, sources_max)
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.window.iter().filter(|source| source.is_open).count()
    }

    /// As `open`, with counted content.
    pub(crate) fn open_counted(
        &mut self,
        content: Buffer,
        sources_max: usize,
    ) -> Result<u32, HostTrap> {
        if content.is_empty() {
            return Ok(0);
        }
        self.push(content, sources_max)
    }

    #[inline]
    fn push(&mut self, bytes: Buffer, sources_max: usize) -> Result<u32, HostTrap> {
        if self.window.len() >= sources_max {
            return Err(HostTrap::limit(LimitKind::Sources, sources_max));
        }
        if self.window.len() == self.window.capacity() {
            self.grow_list()?;
        }
        self.held_bytes += bytes.len();
        self.window.push_back(Source {
            bytes,
            position: 0,
            is_open: true,
        });
        Ok(self.first.wrapping_add(self.window.len() as u32))
    }

    #[cold]
    fn grow_list(&mut self) -> Result<(), HostTrap> {
        let length = (self.window.len() * 2).max(4);
        let bytes = length * size_of::<Source>();
        self.list.hold(bytes).map_err(trap_of)?;
        self.window.reserve_exact(length - self.window.len());
        Ok(())
    }

    /// Whether so many bytes more may be held.
    pub(crate) fn may_hold(&self, bytes: usize, bytes_max: usize) -> Result<(), HostTrap> {
        if bytes <= bytes_max.saturating_sub(self.held_bytes) {
            return Ok(());
        }
        Err(HostTrap::limit(LimitKind::SourceBytes, bytes_max))
    }

    #[inline]
    fn get_mut(&mut self, id: u32) -> Result<&mut Source, Errno> {
        let index = id.wrapping_sub(self.first).wrapping_sub(1) as usize;
        match self.window.get_mut(index) {
            Some(source) if source.is_open => Ok(source),
            _ => Err(Errno::NO_SUCH_BYTES),
        }
    }

    #[inline]
    pub(crate) fn remaining(&mut self, id: u32) -> Result<usize, Errno> {
        self.get_mut(id)
            .map(|source| source.bytes.len() - source.position)
    }

    /// Copies what fits. A source that becomes empty is dropped.
    #[inline]
    pub(crate) fn read(
        &mut self,
        id: u32,
        buffer: &mut [u8],
    ) -> Result<(usize, ReadProgress), Errno> {
        let source = self.get_mut(id)?;
        let rest = &source.bytes[source.position..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        source.position += count;
        if source.position < source.bytes.len() {
            return Ok((count, ReadProgress::More));
        }
        (source.position, source.is_open) = (0, false);
        let finished = std::mem::take(&mut source.bytes);
        self.held_bytes -= finished.len();
        self.keep(finished);
        let is_finished = |source: &mut Source| !source.is_open;
        while self.window.pop_front_if(is_finished).is_some() {
            self.first = self.first.wrapping_add(1);
        }
        Ok((count, ReadProgress::Finished))
    }

    fn keep(&mut self, mut bytes: Buffer) {
        let is_warm = (1..=SPARE_SOURCE_BYTES_MAX).contains(&bytes.capacity());
        if self.spare.len() < SPARE_SOURCES_MAX && is_warm {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// The next source has id 1 again.
    #[inline]
    pub(crate) fn clear(&mut self) {
        while let Some(source) = self.window.pop_front() {
            self.keep(source.bytes);
        }
        self.held_bytes = 0;
        self.first = 0;
    }
}

/// Content that the module passes to the host. Only the host opens sinks.
pub(crate) struct ByteSinks {
    sinks: Vec<Buffer>,
    open: usize,
    account: Arc<Account>,
}

/// A larger buffer is not kept for the next call.
const SPARE_SINK_BYTES_MAX: usize = 64 << 10;

impl ByteSinks {
    pub(crate) fn new(account: &Arc<Account>) -> ByteSinks {
        ByteSinks {
            sinks: Vec::new(),
            open: 0,
            account: account.clone(),
        }
    }

    #[inline]
    pub(crate) fn open(&mut self) -> u32 {
        if self.open == self.sinks.len() {
            self.sinks.push(Counted::empty(&self.account));
        }
        self.open += 1;
        self.open as u32
    }

    #[inline]
    fn get_mut(&mut self, id: u32) -> Option<&mut Buffer> {
        self.sinks[..self.open].get_mut(id.wrapping_sub(1) as usize)
    }

    pub(crate) fn write(
        &mut self,
        id: u32,
        content: &[u8],
        sink_bytes_max: usize,
    ) -> Result<(), AbiError> {
        let sink = self.get_mut(id).ok_or(Errno::NO_SUCH_BYTES)?;
        if content.len() > sink_bytes_max.saturating_sub(sink.len()) {
            return Err(Errno::NO_SPACE.into());
        }
        sink.extend(content).map_err(out_of_memory)
    }

    pub(crate) fn exists(&self, id: u32) -> bool {
        id != 0 && (id as usize) <= self.open
    }

    pub(crate) fn content(&self, id: u32) -> &[u8] {
        self.sinks[..self.open]
            .get(id.wrapping_sub(1) as usize)
            .map_or(&[], |sink| sink)
    }

    /// The content, still counted. A small one is copied, so that the sink keeps its buffer.
    pub(crate) fn take(&mut self, id: u32) -> Result<Buffer, HostTrap> {
        let empty = Counted::empty(&self.account);
        let account = self.account.clone();
        let Some(sink) = self.get_mut(id) else {
            return Ok(empty);
        };
        match sink.capacity() > SPARE_SINK_BYTES_MAX {
            true => Ok(std::mem::replace(sink, empty)),
            false => Counted::copy_of(sink, &account).map_err(trap_of),
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        for sink in &mut self.sinks[..self.open] {
            sink.clear();
            if sink.capacity() > SPARE_SINK_BYTES_MAX {
                *sink = Counted::empty(&self.account);
            }
        }
        self.open = 0;
    }
}

/// They live until they are ended, also beyond the call (spec 03 §7).
pub(crate) struct ConsoleTimers {
    slots: Vec<Option<(Counted<String>, Instant)>>,
    running: usize,
    account: Arc<Account>,
    /// The bytes of the list itself.
    list: Reservation,
}

impl ConsoleTimers {
    pub(crate) fn new(account: &Arc<Account>) -> ConsoleTimers {
        ConsoleTimers {
            slots: Vec::new(),
            running: 0,
            account: account.clone(),
            list: Reservation::none(account),
        }
    }

    /// Ends all timers without a record.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.running > 0 {
            self.slots.clear();
            self.running = 0;
        }
    }

    pub(crate) fn start(
        &mut self,
        name: String,
        console_timers_max: usize,
    ) -> Result<u32, AbiError> {
        if self.running >= console_timers_max {
            return Err(HostTrap::limit(LimitKind::ConsoleTimers, console_timers_max).into());
        }
        let name = Counted::of(name.into_bytes(), &self.account).map_err(out_of_memory)?;
        let name = name.map(|name| String::from_utf8(name).expect("it was a text"));
        let free = self.slots.iter().position(Option::is_none);
        let index = match free {
            Some(index) => index,
            None => self.push_slot()?,
        };
        self.slots[index] = Some((name, Instant::now()));
        self.running += 1;
        Ok(index as u32 + 1)
    }

    fn push_slot(&mut self) -> Result<usize, AbiError> {
        if self.slots.len() == self.slots.capacity() {
            let length = (self.slots.len() * 2).max(4);
            let bytes = length * size_of::<Option<(Counted<String>, Instant)>>();
            self.list.hold(bytes).map_err(out_of_memory)?;
            self.slots.reserve_exact(length - self.slots.len());
        }
        self.slots.push(None);
        Ok(self.slots.len() - 1)
    }

    pub(crate) fn end(&mut self, id: u32) -> Result<(Counted<String>, Duration), Errno> {
        let slot = self.slots.get_mut(id.wrapping_sub(1) as usize);
        let (name, start) = slot
            .and_then(Option::take)
            .ok_or(Errno::NO_SUCH_CONSOLE_TIMER)?;
        self.running -= 1;
        Ok((name, start.elapsed()))
    }
}

/// The call ends: its account is exhausted.
#[cold]
pub(crate) fn out_of_memory(exceeded: Exceeded) -> AbiError {
    trap_of(exceeded).into()
}

/// The trap of a call whose account is exhausted.
#[cold]
pub fn trap_of(exceeded: Exceeded) -> HostTrap {
    let kind = match exceeded.kind {
        Kind::Owner | Kind::AllProcedures => LimitKind::AllProceduresMemory,
        Kind::Procedures => LimitKind::ProcedureMemory,
        _ => LimitKind::Memory,
    };
    HostTrap::limit(kind, exceeded.bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Arc<Account> {
        Account::root(Kind::Instance, 1 << 20)
    }

    #[test]
    fn sources_count_up_within_a_call_and_end_with_their_content() {
        let mut sources = ByteSources::new(&account());
        assert_eq!(sources.open(b"", 10).unwrap(), 0);
        assert_eq!(sources.open(b"abcde", 10).unwrap(), 1);
        assert_eq!(sources.open(b"x", 10).unwrap(), 2);
        let mut buffer = [0; 3];
        assert_eq!(sources.read(1, &mut []), Ok((0, ReadProgress::More)));
        assert_eq!(sources.read(1, &mut buffer), Ok((3, ReadProgress::More)));
        assert_eq!(&buffer, b"abc");
        assert_eq!(sources.remaining(1), Ok(2));
        assert_eq!(
            sources.read(2, &mut buffer),
            Ok((1, ReadProgress::Finished))
        );
        assert_eq!(
            sources.read(1, &mut buffer),
            Ok((2, ReadProgress::Finished))
        );
        for id in [0, 1, 2, 3, u32::MAX] {
            assert_eq!(
                sources.remaining(id),
                Err(Errno::NO_SUCH_BYTES),
                "source {id}"
            );
            assert_eq!(
                sources.read(id, &mut buffer),
                Err(Errno::NO_SUCH_BYTES),
                "source {id}"
            );
        }
        assert_eq!(
            sources.open(b"y", 10).unwrap(),
            3,
            "ids are not reused within a call"
        );
        sources.clear();
        assert_eq!(sources.open(b"z", 10).unwrap(), 1, "a new call starts at 1");
    }

    #[test]
    fn unread_sources_are_limited_but_read_ones_are_not() {
        let mut sources = ByteSources::new(&account());
        for round in 0..100 {
            let id = sources.open(b"a", 2).unwrap();
            assert_eq!(id, round + 1);
            sources.read(id, &mut [0; 8]).unwrap();
        }
        sources.open(b"a", 2).unwrap();
        sources.open(b"a", 2).unwrap();
        assert!(matches!(
            sources.open(b"a", 2),
            Err(HostTrap::Limit {
                kind: LimitKind::Sources,
                limit: 2
            })
        ));
    }

    #[test]
    fn bytes_of_unread_sources_are_limited() {
        let mut sources = ByteSources::new(&account());
        let small = sources.open(b"a", 10).unwrap();
        let large = sources.open(&[0; 100], 10).unwrap();
        assert!(sources.may_hold(99, 200).is_ok());
        let error = sources.may_hold(100, 200).unwrap_err();
        assert!(matches!(
            error,
            HostTrap::Limit {
                kind: LimitKind::SourceBytes,
                limit: 200
            }
        ));
        // A source that was read holds nothing, also behind another one.
        sources.read(large, &mut [0; 100]).unwrap();
        assert!(sources.may_hold(199, 200).is_ok());
        assert!(sources.may_hold(200, 200).is_err());
        sources.read(small, &mut [0; 1]).unwrap();
        assert!(sources.may_hold(200, 200).is_ok());
        sources.open(&[0; 100], 10).unwrap();
        sources.clear();
        assert!(sources.may_hold(200, 200).is_ok());
    }

    #[test]
    fn sinks_collect_until_they_are_full() {
        let mut sinks = ByteSinks::new(&account());
        assert_eq!(sinks.write(1, b"a", 4), Err(Errno::NO_SUCH_BYTES.into()));
        let id = sinks.open();
        assert_eq!(id, 1);
        assert_eq!(sinks.write(0, b"a", 4), Err(Errno::NO_SUCH_BYTES.into()));
        assert_eq!(sinks.write(id, b"abc", 4), Ok(()));
        assert_eq!(sinks.write(id, b"", 4), Ok(()));
        assert_eq!(sinks.write(id, b"de", 4), Err(Errno::NO_SPACE.into()));
        assert_eq!(sinks.write(id, b"d", 4), Ok(()));
        assert_eq!(sinks.content(id), b"abcd");
        sinks.clear();
        assert!(!sinks.exists(1));
        assert_eq!(sinks.content(1), b"");
        sinks.open();
        assert_eq!(
            sinks.content(1),
            b"",
            "nothing is left from the call before"
        );
    }

    #[test]
    fn timers_reuse_ids() {
        let mut timers = ConsoleTimers::new(&account());
        assert_eq!(timers.start("a".into(), 2).unwrap(), 1);
        assert_eq!(timers.start("b".into(), 2).unwrap(), 2);
        assert!(timers.start("c".into(), 2).is_err());
        assert_eq!(*timers.end(1).unwrap().0, "a");
        assert_eq!(timers.end(1).unwrap_err(), Errno::NO_SUCH_CONSOLE_TIMER);
        assert_eq!(timers.end(0).unwrap_err(), Errno::NO_SUCH_CONSOLE_TIMER);
        assert_eq!(timers.start("c".into(), 2).unwrap(), 1);
    }

    #[test]
    fn what_is_held_counts_until_it_goes() {
        let account = Account::root(Kind::Procedures, 300 << 10);
        let refused = |result: Result<u32, AbiError>| {
            let limit = LimitKind::ProcedureMemory;
            matches!(result, Err(AbiError::Trap(HostTrap::Limit { kind, .. })) if kind == limit)
        };
        let mut sources = ByteSources::new(&account);
        sources.open(&[1; 200 << 10], 10).unwrap();
        assert!(account.used() >= 200 << 10);
        let mut timers = ConsoleTimers::new(&account);
        let name = || "n".repeat(64 << 10);
        timers.start(name(), 1024).unwrap();
        assert!(refused(timers.start(name(), 1024)));
        let mut sinks = ByteSinks::new(&account);
        let id = sinks.open();
        assert!(refused(
            sinks.write(id, &[2; 64 << 10], 1 << 30).map(|()| 0)
        ));
        let opened = sources.open(&[1; 64 << 10], 10);
        assert!(refused(opened.map_err(AbiError::from)));
        // What is given back is free for others.
        sources.clear();
        sinks.write(id, &[2; 150 << 10], 1 << 30).unwrap();
        let taken = sinks.take(id).expect("it counts already");
        assert_eq!(taken.len(), 150 << 10);
        sinks.clear();
        assert!(account.used() >= 214 << 10, "it counts for its new owner");
        drop((taken, timers, sinks, sources));
        assert_eq!(account.used(), 0);
    }

    #[test]
    fn the_list_of_sources_counts_too() {
        let account = Account::root(Kind::Procedures, 4 << 20);
        let mut sources = ByteSources::new(&account);
        let mut opened = 0;
        while sources.open(b"x", usize::MAX).is_ok() {
            opened += 1;
        }
        assert!((8_000..20_000).contains(&opened), "{opened} of one byte");
    }
}
