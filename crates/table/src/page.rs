//! Page buffers shared between the one writer and any number of snapshots.
//!
//! The writer owns a page *exclusively* while no snapshot holds it, and then changes it in place. Taking a snapshot
//! raises the table's epoch. A page with an older epoch may be held by a snapshot: the first write to it looks at the
//! reference count, copies the page if it must, and gives it the new epoch. Every other write costs one comparison of
//! integers and no atomic operation.

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::row_id::PageNumber;

/// A page's bytes on the heap, aligned to 64 bytes.
struct PageBuffer {
    data: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer is plain bytes. It is written only through `PageTable::bytes_mut`, which requires that no other
// reference to the buffer exists; every other access is a shared read.
unsafe impl Send for PageBuffer {}
// SAFETY: as above.
unsafe impl Sync for PageBuffer {}

impl PageBuffer {
    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len.max(1), 64).expect("page sizes are far below isize::MAX")
    }

    fn zeroed(len: usize) -> PageBuffer {
        let layout = Self::layout(len);
        // SAFETY: the layout has a non-zero size.
        let data = unsafe { alloc_zeroed(layout) };
        match NonNull::new(data) {
            Some(data) => PageBuffer { data, len },
            None => handle_alloc_error(layout),
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `data` points to `len` initialised bytes (zeroed at allocation) for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with the same layout.
        unsafe { dealloc(self.data.as_ptr(), Self::layout(self.len)) }
    }
}

/// A page as a snapshot sees it: it never changes while this value lives.
#[derive(Clone)]
pub struct PageImage(Arc<PageBuffer>);

impl PageImage {
    /// The whole page, in the layout of `docs/on-disk-formats.md`.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Counts the snapshots of a table. Not the epoch of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
struct PageEpoch(u64);

/// The pages of one table.
#[derive(Default)]
pub(crate) struct PageTable {
    pages: Vec<Arc<PageBuffer>>,
    /// First byte of each page, so that a row is one load away.
    starts: Vec<NonNull<u8>>,
    /// A page is exclusively ours if its entry equals `epoch`.
    epochs: Vec<PageEpoch>,
    epoch: PageEpoch,
}

// SAFETY: `starts` points into `pages`, which the value owns; see `PageBuffer`.
unsafe impl Send for PageTable {}

impl PageTable {
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    pub fn push_zeroed(&mut self, len: usize) -> PageNumber {
        let page = Arc::new(PageBuffer::zeroed(len));
        self.starts.push(page.data);
        self.epochs.push(self.epoch);
        self.pages.push(page);
        PageNumber::new(self.pages.len() - 1)
    }

    /// Puts a new zeroed page in the place of another.
    pub fn replace_zeroed(&mut self, page: PageNumber, len: usize) {
        let buffer = Arc::new(PageBuffer::zeroed(len));
        self.starts[page.index()] = buffer.data;
        self.epochs[page.index()] = self.epoch;
        self.pages[page.index()] = buffer;
    }

    #[inline]
    pub fn bytes(&self, page: PageNumber) -> &[u8] {
        self.pages[page.index()].bytes()
    }

    /// `len` bytes at `start` of a page, with one look at it: its length is not read.
    ///
    /// # Safety
    /// The page has at least `start + len` bytes.
    ///
    /// # Panics
    /// If there is no such page.
    #[inline]
    pub unsafe fn slice(&self, page: PageNumber, start: usize, len: usize) -> &[u8] {
        debug_assert!(start + len <= self.pages[page.index()].len);
        // SAFETY: the buffer has these bytes by the caller's word, and all of them are initialised. The lifetime is bound
        // to `self`, and pages are freed or written to only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.starts[page.index()].as_ptr().add(start), len) }
    }

    /// The page for writing, copied first if a snapshot still holds it.
    #[inline]
    pub fn bytes_mut(&mut self, page: PageNumber) -> &mut [u8] {
        let index = page.index();
        if self.epochs[index] != self.epoch {
            self.make_exclusive(index);
        }
        // SAFETY: the page is exclusive (its only `Arc` is in `self.pages`), and `&mut self` rules out other borrows
        // of it from here; the pointer covers `len` initialised bytes.
        unsafe {
            std::slice::from_raw_parts_mut(self.starts[index].as_ptr(), self.pages[index].len)
        }
    }

    #[cold]
    fn make_exclusive(&mut self, index: usize) {
        assert!(
            self.epochs[index] < self.epoch,
            "epochs of pages never go back"
        );
        if Arc::get_mut(&mut self.pages[index]).is_none() {
            let old = &self.pages[index];
            let copy = PageBuffer::zeroed(old.len);
            // SAFETY: both buffers have `old.len` bytes and do not overlap, as `copy` is fresh.
            unsafe {
                copy.data
                    .as_ptr()
                    .copy_from_nonoverlapping(old.data.as_ptr(), old.len)
            };
            self.starts[index] = copy.data;
            self.pages[index] = Arc::new(copy);
        }
        self.epochs[index] = self.epoch;
    }

    /// Hands out all pages as they are now. Costs one reference count per page.
    pub fn snapshot(&mut self) -> Vec<PageImage> {
        self.epoch = PageEpoch(self.epoch.0 + 1);
        self.pages.iter().cloned().map(PageImage).collect()
    }

    pub fn heap_bytes(&self) -> usize {
        self.pages.iter().map(|page| page.len).sum::<usize>() + self.pages.len() * 40
    }
}
