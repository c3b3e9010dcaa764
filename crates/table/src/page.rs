//! Page buffers shared between the one writer and any number of frozen copies.
//!
//! The writer owns a page *exclusively* while no frozen copy holds it, and then changes it in place. Freezing raises the
//! table's epoch. A page with an older epoch may be held by a frozen copy: the first write to it looks at the reference
//! counts, copies the page if it must, and gives it the new epoch. Every other write costs one comparison of integers and
//! no atomic operation.

use std::alloc::{alloc, alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use crate::row_id::PageNumber;

/// Target size of a page of rows in bytes.
pub(crate) const PAGE_BYTES: usize = 64 * 1024;

/// The name of a page image in snapshots: a hash of its bytes.
pub type PageHash = [u8; 32];

/// A page's bytes on the heap, aligned to 64 bytes.
struct PageBuffer {
    data: NonNull<u8>,
    len: usize,
    /// Of these bytes, if a snapshot has computed it. Set while a frozen copy holds the page, or before the page is exclusive, and
    /// cleared when it becomes exclusive: so never of other bytes.
    hash: OnceLock<PageHash>,
}

// SAFETY: the buffer is plain bytes. Once it is shared it is written only through `PageTable::bytes_mut`, which requires that no
// other reference to the buffer exists; every other access is a shared read.
unsafe impl Send for PageBuffer {}
// SAFETY: as above.
unsafe impl Sync for PageBuffer {}

impl PageBuffer {
    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len.max(1), 64).expect("page sizes are far below isize::MAX")
    }

    fn zeroed(len: usize) -> PageBuffer {
        // SAFETY: the layout has a non-zero size.
        let data = unsafe { alloc_zeroed(Self::layout(len)) };
        PageBuffer::of(data, len)
    }

    /// Nothing but these bytes is written to: an allocator that zeroes memory may touch more of it than was asked for.
    fn copy_of(bytes: &[u8]) -> PageBuffer {
        // SAFETY: the layout has a non-zero size.
        let data = unsafe { alloc(Self::layout(bytes.len())) };
        let page = PageBuffer::of(data, bytes.len());
        // SAFETY: the buffer has as many bytes, and does not overlap with them, as it is fresh.
        unsafe { data.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        page
    }

    /// A buffer of the layout for so many bytes, unless there was no memory.
    fn of(data: *mut u8, len: usize) -> PageBuffer {
        let data = NonNull::new(data);
        PageBuffer {
            data: data.unwrap_or_else(|| handle_alloc_error(Self::layout(len))),
            len,
            hash: OnceLock::new(),
        }
    }

    /// All of them are initialised by now.
    fn bytes(&self) -> &[u8] {
        // SAFETY: start and length are those of the buffer. It is freed when `self` goes, and written to only where there is no other
        // reference to it.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` or `copy_of` with the same layout.
        unsafe { dealloc(self.data.as_ptr(), Self::layout(self.len)) }
    }
}

/// Counts how often a table was frozen. Not the epoch of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
struct PageEpoch(u64);

/// Pages are shared in groups of so many, so that freezing a table counts groups and not pages.
const GROUP_PAGES: usize = 32;

/// Pages one behind the other, as a table or a frozen copy of it owns them.
#[derive(Clone, Default)]
struct PageGroup(Vec<Arc<PageBuffer>>);

/// The pages of one table or index, or a frozen copy of them.
#[derive(Default)]
pub(crate) struct PageTable {
    /// All of them have [`GROUP_PAGES`] pages, but for the last one.
    groups: Vec<Arc<PageGroup>>,
    /// First byte of each page, so that a row is one load away.
    starts: Vec<NonNull<u8>>,
    /// Length of each page in bytes.
    lens: Vec<u32>,
    /// A page is exclusively ours if its entry equals `epoch`. Frozen copies have none, so they cannot be written to.
    epochs: Vec<PageEpoch>,
    epoch: PageEpoch,
    released_bytes: u64,
    /// The sum of `lens`.
    bytes: usize,
}

// SAFETY: `starts` points into `groups`, which the value owns; see `PageBuffer`.
unsafe impl Send for PageTable {}
// SAFETY: as above. Through a shared reference pages are only read, and what another table owns too is not written to: that
// table copies it first.
unsafe impl Sync for PageTable {}

impl PageTable {
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    pub fn push_zeroed(&mut self, len: usize) -> PageNumber {
        let page = self.push(FrozenPage(Arc::new(PageBuffer::zeroed(len))));
        self.epochs[page.index()] = self.epoch;
        page
    }

    /// A page of another table. It is not exclusive: the first write to it forgets its hash.
    pub fn push(&mut self, page: FrozenPage) -> PageNumber {
        let FrozenPage(page) = page;
        self.starts.push(page.data);
        self.lens.push(page_len(page.len));
        self.bytes += page.len;
        self.epoch = self.epoch.max(PageEpoch(1));
        self.epochs.push(PageEpoch(self.epoch.0 - 1));
        if self.groups.len() * GROUP_PAGES < self.starts.len() {
            self.groups.push(Arc::default());
        }
        let last = self.groups.last_mut().expect("one was just made");
        Arc::make_mut(last).0.push(page);
        PageNumber::new(self.starts.len() - 1)
    }

    /// Puts a new zeroed page in the place of another.
    pub fn replace_zeroed(&mut self, page: PageNumber, len: usize) {
        let index = page.index();
        if self.epochs[index] != self.epoch {
            self.released_bytes += u64::from(self.lens[index]);
        }
        self.put(index, PageBuffer::zeroed(len));
    }

    /// Removes all pages.
    pub fn clear(&mut self) {
        *self = self.emptied();
    }

    /// A table without pages that goes on from here when this one's content has moved to it.
    pub fn emptied(&self) -> PageTable {
        let shared = self.lens.iter().zip(&self.epochs);
        let shared = shared.filter(|(_, epoch)| **epoch != self.epoch);
        PageTable {
            epoch: self.epoch,
            released_bytes: self.released_bytes
                + shared.map(|(len, _)| u64::from(*len)).sum::<u64>(),
            ..PageTable::default()
        }
    }

    fn put(&mut self, index: usize, page: PageBuffer) {
        self.starts[index] = page.data;
        self.bytes = self.bytes - self.lens[index] as usize + page.len;
        self.lens[index] = page_len(page.len);
        self.epochs[index] = self.epoch;
        let group = Arc::make_mut(&mut self.groups[index / GROUP_PAGES]);
        group.0[index % GROUP_PAGES] = Arc::new(page);
    }

    #[inline]
    pub fn bytes(&self, page: PageNumber) -> &[u8] {
        let index = page.index();
        // SAFETY: start and length are those of a buffer in `groups`, whose bytes are all initialised. The lifetime is bound to
        // `self`, and pages are freed or written to only through `&mut self`.
        unsafe {
            std::slice::from_raw_parts(self.starts[index].as_ptr(), self.lens[index] as usize)
        }
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
        debug_assert!(start + len <= self.lens[page.index()] as usize);
        // SAFETY: the buffer has these bytes by the caller's word, and all of them are initialised. The lifetime is bound
        // to `self`, and pages are freed or written to only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.starts[page.index()].as_ptr().add(start), len) }
    }

    /// The page for writing, copied first if a frozen copy still holds it.
    ///
    /// # Panics
    /// If this is a frozen copy, or there is no such page.
    #[inline]
    pub fn bytes_mut(&mut self, page: PageNumber) -> &mut [u8] {
        let index = page.index();
        if self.epochs[index] != self.epoch {
            self.make_exclusive(index);
        }
        // SAFETY: the page is exclusive (its only `Arc` is in a group that only `self.groups` holds), and `&mut self` rules out
        // other borrows of it from here; pointer and length cover the initialised bytes of the buffer.
        unsafe {
            std::slice::from_raw_parts_mut(self.starts[index].as_ptr(), self.lens[index] as usize)
        }
    }

    #[cold]
    fn make_exclusive(&mut self, index: usize) {
        assert!(
            self.epochs[index] < self.epoch,
            "epochs of pages never go back"
        );
        let group = Arc::make_mut(&mut self.groups[index / GROUP_PAGES]);
        let page = &mut group.0[index % GROUP_PAGES];
        if let Some(page) = Arc::get_mut(page) {
            page.hash.take();
            self.epochs[index] = self.epoch;
            return;
        }
        let copy = PageBuffer::copy_of(page.bytes());
        self.released_bytes += page.len as u64;
        self.put(index, copy);
    }

    /// All pages as they are now. Costs a reference count for each group of them, and a copy of the list of their places.
    pub fn freeze(&mut self) -> PageTable {
        self.epoch = PageEpoch(self.epoch.0 + 1);
        PageTable {
            groups: self.groups.clone(),
            starts: self.starts.clone(),
            lens: self.lens.clone(),
            epochs: Vec::new(),
            epoch: self.epoch,
            released_bytes: 0,
            bytes: self.bytes,
        }
    }

    /// The pages one by one. Of a frozen copy, each lets go of its bytes alone.
    pub fn into_pages(self) -> impl Iterator<Item = FrozenPage> {
        let groups = self.groups.into_iter();
        let pages = groups.flat_map(|group| match Arc::try_unwrap(group) {
            Ok(group) => group.0,
            Err(shared) => shared.0.clone(),
        });
        pages.map(FrozenPage)
    }

    /// Bytes that frozen copies may hold alone, since they were copied or replaced here; all that ever were.
    pub fn released_bytes(&self) -> u64 {
        self.released_bytes
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes + self.starts.len() * 84
    }
}

/// A page as it was when its table was frozen, or that is on its way into one. As long as this is there, the writer copies the page
/// before it changes it.
pub struct FrozenPage(Arc<PageBuffer>);

impl FrozenPage {
    /// A page from a snapshot, or a copy of one.
    pub(crate) fn of_image(image: &[u8]) -> FrozenPage {
        FrozenPage(Arc::new(PageBuffer::copy_of(image)))
    }

    /// Whether nothing else holds it: its table has another in its place, and no frozen copy has it.
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The hash of the bytes, if it was set since they were last changed.
    pub fn hash(&self) -> Option<PageHash> {
        self.0.hash.get().copied()
    }

    /// Tells the hash of the bytes, for the next time that the page is frozen unchanged.
    pub fn set_hash(&self, hash: PageHash) {
        // If it is known already, it is the same.
        let _ = self.0.hash.set(hash);
    }
}

fn page_len(len: usize) -> u32 {
    u32::try_from(len).expect("rows, and so pages, are far below 4 GiB")
}
