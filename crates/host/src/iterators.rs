//! Row iterators (spec 03 §7.4): the rows of a scan, in chunks.

use std::sync::Arc;

use lightcone_accounts::{Account, Reservation};
use lightcone_engine::{RowBuffer, Scan};

use crate::handles::out_of_memory;
use crate::{AbiError, Errno, HostTrap, LimitKind};

/// The result of `row_iter_bsatn_advance` (spec 03 §7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Bytes were copied, and more rows follow; the host call answers 0.
    More(usize),
    /// Bytes were copied, and the iterator is gone; the host call answers -1.
    Finished(usize),
    /// Nothing was copied: the next chunk has this size. The host call answers errno 11.
    TooSmall(usize),
}

/// The rows of scans, in whole chunks.
///
/// A scan runs in parts, each when the one before is used up. The remainder is fetched before its table changes, so that the module
/// sees the rows as they were at the beginning (spec 03 §8.2). All buffers count in the account of the instance, also spare ones.
pub(crate) struct RowIterators {
    slots: Vec<Slot>,
    /// Open iterators with rows left to fetch.
    unfinished: usize,
    /// Closed slots, the last one on top: its buffer is warm.
    free: Vec<u32>,
    /// Bytes of rows in open iterators.
    open_bytes: usize,
    /// Capacity of the buffers of closed slots.
    spare_bytes: usize,
    /// For all buffers and the list of slots.
    held: Reservation,
    held_bytes: usize,
}

#[derive(Default)]
struct Slot {
    /// The part that is given out.
    buffer: RowBuffer,
    /// The capacity that is counted in `held`.
    counted_bytes: usize,
    scan: Scan,
    /// The largest size of the next part.
    part_bytes: usize,
    /// Bytes given out, and the chunk behind them.
    position: usize,
    chunk: usize,
    open: bool,
}

/// Most modules read one row or a page of them, so the first part of a scan is small. Each later part is twice as large as the one
/// before, up to the largest.
const PART_BYTES_FIRST: usize = 4 << 10;
const PART_BYTES_MAX: usize = 256 << 10;

/// Kept by an instance between scans.
const SPARE_ROW_BYTES_MAX: usize = 64 << 20;

#[inline]
fn capacity_bytes(buffer: &RowBuffer) -> usize {
    buffer.bytes.capacity() + buffer.chunk_ends.capacity() * size_of::<usize>()
}

impl RowIterators {
    pub(crate) fn new(account: &Arc<Account>) -> RowIterators {
        RowIterators {
            slots: Vec::new(),
            unfinished: 0,
            free: Vec::new(),
            open_bytes: 0,
            spare_bytes: 0,
            held: Reservation::none(account),
            held_bytes: 0,
        }
    }

    /// Counts the capacity of a slot's buffer.
    #[inline]
    fn count(&mut self, index: usize) -> Result<(), AbiError> {
        let slot = &mut self.slots[index];
        let bytes = capacity_bytes(&slot.buffer);
        match bytes == slot.counted_bytes {
            true => Ok(()),
            false => self.recount(index, bytes),
        }
    }

    #[cold]
    fn recount(&mut self, index: usize, bytes: usize) -> Result<(), AbiError> {
        let before = std::mem::replace(&mut self.slots[index].counted_bytes, bytes);
        self.held_bytes = self.held_bytes - before + bytes;
        let list_bytes = self.slots.capacity() * size_of::<Slot>();
        let bytes = self.held_bytes + list_bytes;
        // The rows are there already; if they are too many, the call ends and its instance is dropped.
        self.held.hold(bytes).map_err(|exceeded| {
            self.held.hold_anyway(bytes);
            out_of_memory(exceeded)
        })
    }

    /// Begins a scan in a new iterator. If the scan fails there is none.
    #[inline]
    pub(crate) fn open(
        &mut self,
        iterators_max: usize,
        iterator_bytes_max: usize,
        begin: impl FnOnce(&mut Scan, usize, &mut RowBuffer) -> Result<(), AbiError>,
    ) -> Result<u32, AbiError> {
        let index = match self.free.pop() {
            Some(index) => {
                self.spare_bytes -= self.slots[index as usize].buffer.bytes.capacity();
                index
            }
            None if self.slots.len() < iterators_max => {
                self.slots.push(Slot::default());
                (self.slots.len() - 1) as u32
            }
            None => return Err(HostTrap::limit(LimitKind::Iterators, iterators_max).into()),
        };
        let slot = &mut self.slots[index as usize];
        let begun = begin(&mut slot.scan, PART_BYTES_FIRST, &mut slot.buffer);
        slot.part_bytes = PART_BYTES_FIRST * 2;
        slot.position = 0;
        slot.chunk = 0;
        slot.open = true;
        self.open_bytes += slot.buffer.bytes.len();
        self.unfinished += usize::from(slot.scan.has_more());
        let counted = self.count(index as usize);
        let checked = begun
            .and(counted)
            .and_then(|()| self.check_bytes(iterator_bytes_max));
        if let Err(error) = checked {
            self.release(index);
            return Err(error);
        }
        Ok(index + 1)
    }

    #[inline]
    fn check_bytes(&self, iterator_bytes_max: usize) -> Result<(), AbiError> {
        if self.open_bytes > iterator_bytes_max {
            return Err(HostTrap::limit(LimitKind::IteratorBytes, iterator_bytes_max).into());
        }
        Ok(())
    }

    /// Whether the scan must go on before there are more rows to give out.
    #[inline]
    pub(crate) fn is_used_up(&self, id: u32) -> bool {
        let slot = self.slots.get(id.wrapping_sub(1) as usize);
        slot.is_some_and(|slot| {
            slot.open && slot.scan.has_more() && slot.chunk == slot.buffer.chunk_ends.len()
        })
    }

    /// Fetches the next part of a scan.
    pub(crate) fn refill(
        &mut self,
        id: u32,
        iterator_bytes_max: usize,
        proceed: impl FnOnce(&mut Scan, usize, &mut RowBuffer) -> Result<(), AbiError>,
    ) -> Result<(), AbiError> {
        let slot = &mut self.slots[id as usize - 1];
        self.open_bytes -= slot.buffer.bytes.len();
        slot.buffer.clear();
        slot.position = 0;
        slot.chunk = 0;
        proceed(&mut slot.scan, slot.part_bytes, &mut slot.buffer)?;
        slot.part_bytes = (slot.part_bytes * 2).min(PART_BYTES_MAX);
        self.open_bytes += slot.buffer.bytes.len();
        self.unfinished -= usize::from(!slot.scan.has_more());
        self.count(id as usize - 1)?;
        self.check_bytes(iterator_bytes_max)
    }

    /// Whether an iterator has rows left to fetch.
    #[inline]
    pub(crate) fn has_unfinished(&self) -> bool {
        self.unfinished > 0
    }

    /// Fetches the remainder of the scans for which `is_meant` holds.
    pub(crate) fn finish(
        &mut self,
        iterator_bytes_max: usize,
        is_meant: impl Fn(&Scan) -> bool,
        mut proceed: impl FnMut(&mut Scan, usize, &mut RowBuffer) -> Result<(), AbiError>,
    ) -> Result<(), AbiError> {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if !(slot.open && slot.scan.has_more() && is_meant(&slot.scan)) {
                continue;
            }
            let before = slot.buffer.bytes.len();
            proceed(&mut slot.scan, usize::MAX, &mut slot.buffer)?;
            self.open_bytes += slot.buffer.bytes.len() - before;
            self.unfinished -= 1;
            self.count(index)?;
        }
        self.check_bytes(iterator_bytes_max)
    }

    #[inline]
    pub(crate) fn exists(&self, id: u32) -> bool {
        self.slots
            .get(id.wrapping_sub(1) as usize)
            .is_some_and(|slot| slot.open)
    }

    /// Copies as many whole chunks as fit.
    #[inline]
    pub(crate) fn advance(&mut self, id: u32, buffer: &mut [u8]) -> Result<Advance, Errno> {
        let index = id.wrapping_sub(1);
        let slot = match self.slots.get_mut(index as usize) {
            Some(slot) if slot.open => slot,
            _ => return Err(Errno::NO_SUCH_ITER),
        };
        let ends = &slot.buffer.chunk_ends;
        let room_end = slot.position.saturating_add(buffer.len());
        let mut chunk = slot.chunk;
        let mut end = slot.position;
        while let Some(&next) = ends.get(chunk).filter(|&&next| next <= room_end) {
            end = next;
            chunk += 1;
        }
        if chunk == slot.chunk {
            if let Some(&next) = ends.get(chunk) {
                return Ok(Advance::TooSmall(next - slot.position));
            }
        }
        let count = end - slot.position;
        buffer[..count].copy_from_slice(&slot.buffer.bytes[slot.position..end]);
        if chunk < ends.len() || slot.scan.has_more() {
            slot.position = end;
            slot.chunk = chunk;
            return Ok(Advance::More(count));
        }
        self.release(index);
        Ok(Advance::Finished(count))
    }

    pub(crate) fn close(&mut self, id: u32) -> Result<(), Errno> {
        if !self.exists(id) {
            return Err(Errno::NO_SUCH_ITER);
        }
        self.release(id - 1);
        Ok(())
    }

    #[inline]
    fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        self.open_bytes -= slot.buffer.bytes.len();
        self.unfinished -= usize::from(slot.scan.has_more());
        slot.scan.end();
        slot.open = false;
        slot.buffer.clear();
        let capacity = slot.buffer.bytes.capacity();
        if self.spare_bytes + capacity > SPARE_ROW_BYTES_MAX {
            slot.buffer = RowBuffer::default();
            // It is smaller than before.
            let _ = self.count(index as usize);
        } else {
            self.spare_bytes += capacity;
        }
        self.free.push(index);
    }

    /// Closes all iterators.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.free.len() == self.slots.len() {
            return;
        }
        for index in 0..self.slots.len() as u32 {
            if self.slots[index as usize].open {
                self.release(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lightcone_accounts::Kind;

    use super::*;

    fn account() -> Arc<Account> {
        Account::root(Kind::Instance, 1 << 20)
    }

    #[test]
    fn rows_count_also_in_buffers_that_are_kept() {
        let account = account();
        let mut iterators = RowIterators::new(&account);
        let fill = |bytes: usize| {
            move |_: &mut Scan, _: usize, buffer: &mut RowBuffer| {
                buffer.bytes.resize(bytes, 7);
                buffer.chunk_ends.push(bytes);
                Ok(())
            }
        };
        let id = iterators.open(10, 1 << 30, fill(500 << 10)).unwrap();
        assert!(account.used() >= 500 << 10);
        iterators.close(id).unwrap();
        assert!(account.used() >= 500 << 10, "it is warm for the next one");
        assert_eq!(iterators.open(10, 1 << 30, fill(100)).unwrap(), id);
        let error = iterators.open(10, 1 << 30, fill(600 << 10)).unwrap_err();
        let limit = LimitKind::Memory;
        assert!(
            matches!(error, AbiError::Trap(HostTrap::Limit { kind, .. }) if kind == limit),
            "{error}"
        );
        drop(iterators);
        assert_eq!(account.used(), 0);
    }

    fn rows(
        chunks: &'static [&'static [u8]],
    ) -> impl FnOnce(&mut Scan, usize, &mut RowBuffer) -> Result<(), AbiError> {
        move |_, _, buffer| {
            for chunk in chunks {
                buffer.bytes.extend_from_slice(chunk);
                buffer.chunk_ends.push(buffer.bytes.len());
            }
            Ok(())
        }
    }

    #[test]
    fn the_last_rows_and_the_end_come_together() {
        let mut iterators = RowIterators::new(&account());
        let id = iterators
            .open(10, 100, rows(&[b"one", b"two", b"three"]))
            .unwrap();
        assert_eq!(id, 1);
        let mut buffer = [0; 7];
        assert_eq!(iterators.advance(id, &mut []), Ok(Advance::TooSmall(3)));
        assert_eq!(
            iterators.advance(id, &mut buffer[..2]),
            Ok(Advance::TooSmall(3))
        );
        assert_eq!(iterators.advance(id, &mut buffer), Ok(Advance::More(6)));
        assert_eq!(&buffer[..6], b"onetwo");
        assert_eq!(
            iterators.advance(id, &mut buffer[..4]),
            Ok(Advance::TooSmall(5))
        );
        assert_eq!(iterators.advance(id, &mut buffer), Ok(Advance::Finished(5)));
        assert_eq!(iterators.advance(id, &mut buffer), Err(Errno::NO_SUCH_ITER));
        assert_eq!(iterators.close(id), Err(Errno::NO_SUCH_ITER));
    }

    #[test]
    fn an_empty_scan_is_finished_at_once() {
        let mut iterators = RowIterators::new(&account());
        let id = iterators.open(10, 100, rows(&[])).unwrap();
        assert_eq!(iterators.advance(id, &mut []), Ok(Advance::Finished(0)));
    }

    #[test]
    fn freed_iterators_are_reused_and_leftovers_are_closed() {
        let mut iterators = RowIterators::new(&account());
        assert_eq!(iterators.open(2, 100, rows(&[b"a"])).unwrap(), 1);
        assert_eq!(iterators.open(2, 100, rows(&[b"b"])).unwrap(), 2);
        assert!(matches!(
            iterators.open(2, 100, rows(&[b"c"])),
            Err(AbiError::Trap(HostTrap::Limit {
                kind: LimitKind::Iterators,
                ..
            }))
        ));
        assert_eq!(iterators.close(1), Ok(()));
        assert_eq!(iterators.open(2, 100, rows(&[b"c"])).unwrap(), 1);
        iterators.clear();
        assert!(!iterators.exists(1) && !iterators.exists(2));
        assert_eq!(iterators.open_bytes, 0);
        let id = iterators.open(2, 100, rows(&[b"d"])).unwrap();
        let mut buffer = [0; 4];
        assert_eq!(iterators.advance(id, &mut buffer), Ok(Advance::Finished(1)));
        assert_eq!(buffer[0], b'd');
    }

    #[test]
    fn open_iterators_may_not_hold_too_many_bytes() {
        let mut iterators = RowIterators::new(&account());
        iterators.open(10, 10, rows(&[b"12345678"])).unwrap();
        assert!(matches!(
            iterators.open(10, 10, rows(&[b"123"])),
            Err(AbiError::Trap(HostTrap::Limit {
                kind: LimitKind::IteratorBytes,
                limit: 10
            }))
        ));
        assert!(!iterators.exists(2));
        iterators.open(10, 10, rows(&[b"12"])).unwrap();
    }

    #[test]
    fn a_failed_scan_leaves_no_iterator() {
        let mut iterators = RowIterators::new(&account());
        let failed = iterators.open(10, 100, |_, _, buffer| {
            buffer.bytes.push(1);
            Err(Errno::NO_SUCH_TABLE.into())
        });
        assert_eq!(failed, Err(AbiError::Errno(Errno::NO_SUCH_TABLE)));
        assert!(!iterators.exists(1));
        assert_eq!(iterators.open_bytes, 0);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(64))]

        /// The module gets every byte once, in whole chunks, for all sizes of chunks and buffers.
        #[test]
        fn every_byte_comes_once(lengths in proptest::collection::vec(1usize..50, 0..12), capacity in 0usize..120) {
            let mut iterators = RowIterators::new(&account());
            let mut expected = Vec::new();
            let mut ends = Vec::new();
            for (number, length) in lengths.iter().enumerate() {
                expected.extend(std::iter::repeat_n(number as u8, *length));
                ends.push(expected.len());
            }
            let (bytes, chunk_ends) = (expected.clone(), ends.clone());
            let id = iterators
                .open(1, 10_000, |_, _, buffer| {
                    buffer.bytes.extend_from_slice(&bytes);
                    buffer.chunk_ends.extend_from_slice(&chunk_ends);
                    Ok(())
                })
                .unwrap();
            let mut got = Vec::new();
            let mut buffer = vec![0; capacity];
            loop {
                match iterators.advance(id, &mut buffer).unwrap() {
                    Advance::More(count) => {
                        got.extend_from_slice(&buffer[..count]);
                        proptest::prop_assert!(ends.contains(&got.len()));
                    }
                    Advance::Finished(count) => {
                        got.extend_from_slice(&buffer[..count]);
                        break;
                    }
                    Advance::TooSmall(size) => {
                        proptest::prop_assert!(size > buffer.len());
                        buffer.resize(size, 0);
                    }
                }
            }
            proptest::prop_assert_eq!(got, expected);
        }
    }
}
