//! Page buffers shared between the one writer and any number of snapshots.
//!
//! The writer owns a page *exclusively* while no snapshot holds it, and then changes it in place. Taking a snapshot
//! raises the store's epoch; a page whose epoch is older may be held by a snapshot, so the first write to it checks the
//! reference count and copies the page if it must. That is one integer comparison per write and no atomic operation.

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ptr::NonNull;
use std::sync::Arc;

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

/// The pages of one table.
#[derive(Default)]
pub(crate) struct PageTable {
    pages: Vec<Arc<PageBuffer>>,
    /// First byte of each page, so that a row is one load away.
    starts: Vec<NonNull<u8>>,
    /// A page is exclusively ours if its entry equals `epoch`.
    epochs: Vec<u64>,
    epoch: u64,
}

// SAFETY: `starts` points into `pages`, which the value owns; see `PageBuffer`.
unsafe impl Send for PageTable {}

impl PageTable {
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    pub fn push_zeroed(&mut self, len: usize) -> usize {
        let page = Arc::new(PageBuffer::zeroed(len));
        self.starts.push(page.data);
        self.epochs.push(self.epoch);
        self.pages.push(page);
        self.pages.len() - 1
    }

    /// Puts a new zeroed page in the place of page `index`.
    pub fn replace_zeroed(&mut self, index: usize, len: usize) {
        let page = Arc::new(PageBuffer::zeroed(len));
        self.starts[index] = page.data;
        self.epochs[index] = self.epoch;
        self.pages[index] = page;
    }

    #[inline]
    pub fn bytes(&self, index: usize) -> &[u8] {
        self.pages[index].bytes()
    }

    /// `len` bytes at `offset` of page `index`.
    #[inline]
    pub fn slice(&self, index: usize, offset: usize, len: usize) -> &[u8] {
        debug_assert!(offset + len <= self.pages[index].len);
        // SAFETY: callers (rows.rs) pass offsets inside a page: fixed rows lie at `slot * size` with
        // `slot < rows_per_page`, and the page holds `rows_per_page * size` bytes. The lifetime is bound to `self`,
        // and pages are freed or rewritten only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.starts[index].as_ptr().add(offset), len) }
    }

    /// The page for writing, copied first if a snapshot still holds it.
    #[inline]
    pub fn bytes_mut(&mut self, index: usize) -> &mut [u8] {
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
        self.epoch += 1;
        self.pages.iter().cloned().map(PageImage).collect()
    }

    pub fn heap_bytes(&self) -> usize {
        self.pages.iter().map(|page| page.len).sum::<usize>() + self.pages.len() * 40
    }
}
