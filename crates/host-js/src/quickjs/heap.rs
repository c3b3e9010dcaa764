//! The memory of an isolate: counted, limited, and freed as a whole.
//!
//! QuickJS carves small objects out of chunks; only chunks and large blocks come here. All blocks are in a list, and an isolate is
//! destroyed by freeing them. Nothing is walked, and a value that was never released (after a termination, say) cannot leak.
//!
//! # The limit
//! A refused allocation becomes an ordinary exception, which module code could catch and which some code of QuickJS does not
//! expect. So only large blocks are refused beyond the limit (the module sees an InternalError, "out of memory"). Small ones are
//! granted until the [interrupt handler](super::isolate) notices the excess and ends the call.
//!
//! # The time
//! QuickJS calls the interrupt handler between the steps of a program only, and a step may take long. So large blocks are refused
//! too once the call's time is over, which stops most of its long functions.

use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::{null_mut, NonNull};
use std::sync::Arc;
use std::time::Instant;

use lightcone_host::{trap_of, Account, Exceeded, HostTrap, LimitKind, Reservation};
use rquickjs_sys as qjs;

/// Beyond the limit, blocks of this size are refused.
const LARGE_BLOCK_BYTES: usize = 64 << 10;
/// Small blocks beyond the limit, until the call is ended.
const EXCESS_BYTES_MAX: usize = 1 << 30;
/// The heap is counted in steps, so that its account is rarely touched.
const STEP_BYTES: usize = 1 << 20;

/// Before each block.
#[repr(C, align(16))]
struct Header {
    previous: *mut Header,
    next: *mut Header,
    /// With the header.
    total_bytes: usize,
}

const HEADER_BYTES: usize = size_of::<Header>();

/// All blocks of one isolate.
pub(crate) struct Heap {
    first: Cell<*mut Header>,
    used_bytes: Cell<usize>,
    bytes_max: Cell<usize>,
    /// For the blocks, in steps.
    counted: RefCell<Reservation>,
    exceeded: Cell<bool>,
    refused_bytes: Cell<Option<usize>>,
    /// The exhausted account of the last refusal, unless it was the heap's own limit.
    refused_by: Cell<Option<Exceeded>>,
    deadline: Cell<Option<Instant>>,
    late: Cell<bool>,
}

impl Heap {
    pub(crate) fn new(bytes_max: usize, account: &Arc<Account>) -> Box<Heap> {
        Box::new(Heap {
            first: Cell::new(null_mut()),
            used_bytes: Cell::new(0),
            bytes_max: Cell::new(bytes_max),
            counted: RefCell::new(Reservation::none(account)),
            exceeded: Cell::new(false),
            refused_bytes: Cell::new(None),
            refused_by: Cell::new(None),
            deadline: Cell::new(None),
            late: Cell::new(false),
        })
    }

    /// The size of the last block that was refused since the last [`Heap::forgive`].
    pub(crate) fn refused_bytes(&self) -> Option<usize> {
        self.refused_bytes.get()
    }

    /// Whether small blocks passed the limit since the last [`Heap::forgive`].
    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.get()
    }

    pub(crate) fn set_limit(&self, bytes_max: usize) {
        self.bytes_max.set(bytes_max);
    }

    pub(crate) fn limit(&self) -> usize {
        self.bytes_max.get()
    }

    /// Gives unused reserved bytes back.
    pub(crate) fn settle(&self) {
        self.counted
            .borrow_mut()
            .shrink(steps(self.used_bytes.get()));
    }

    /// The trap for an exhausted heap.
    pub(crate) fn trap(&self) -> HostTrap {
        if let Some(exceeded) = self.refused_by.get() {
            return trap_of(exceeded);
        }
        HostTrap::limit(LimitKind::Memory, self.bytes_max.get())
    }

    /// Whether a block was refused because the call's time was over.
    pub(crate) fn is_late(&self) -> bool {
        self.late.get()
    }

    /// A new call starts, with this deadline.
    pub(crate) fn forgive(&self, deadline: Instant) {
        self.deadline.set(Some(deadline));
        self.late.set(false);
        self.exceeded.set(false);
        self.refused_bytes.set(None);
        self.refused_by.set(None);
    }

    /// Moves the deadline of the running call.
    pub(crate) fn put_off(&self, deadline: Instant) {
        self.deadline.set(Some(deadline));
    }

    /// The allocator of QuickJS; its `opaque` is the heap.
    pub(crate) fn functions() -> qjs::JSMallocFunctions {
        qjs::JSMallocFunctions {
            js_calloc: Some(heap_calloc),
            js_malloc: Some(heap_malloc),
            js_free: Some(heap_free),
            js_realloc: Some(heap_realloc),
            js_malloc_usable_size: Some(heap_usable_size),
        }
    }

    /// Whether `more` bytes are granted. `total` is the size of the block.
    fn admit(&self, more: usize, total: usize) -> bool {
        if total >= LARGE_BLOCK_BYTES && more > 0 {
            let deadline = self.deadline.get();
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.late.set(true);
                return false;
            }
        }
        let (wanted, limit) = (
            self.used_bytes.get().saturating_add(more),
            self.bytes_max.get(),
        );
        let counted = (wanted <= limit).then(|| self.count(wanted));
        if counted == Some(Ok(())) {
            return true;
        }
        self.refused_by.set(counted.and_then(Result::err));
        let is_large = total >= LARGE_BLOCK_BYTES;
        if is_large || wanted > limit.saturating_add(EXCESS_BYTES_MAX) {
            self.refused_bytes.set(Some(total));
        }
        if is_large {
            return false;
        }
        self.exceeded.set(true);
        wanted <= limit.saturating_add(EXCESS_BYTES_MAX)
    }

    /// Reserves up to so many bytes.
    #[inline]
    fn count(&self, bytes: usize) -> Result<(), Exceeded> {
        let mut counted = self.counted.borrow_mut();
        match bytes <= counted.bytes() {
            true => Ok(()),
            false => counted.hold(steps(bytes)),
        }
    }

    fn allocate(&self, bytes: usize, zeroed: bool) -> *mut c_void {
        let Some(layout) = layout(bytes) else {
            return null_mut();
        };
        if !self.admit(layout.size(), layout.size()) {
            return null_mut();
        }
        // SAFETY: the layout is not empty, as it has room for a header.
        let block = unsafe {
            match zeroed {
                true => alloc_zeroed(layout),
                false => alloc(layout),
            }
        };
        let Some(header) = NonNull::new(block.cast::<Header>()) else {
            return null_mut();
        };
        self.used_bytes.set(self.used_bytes.get() + layout.size());
        // SAFETY: the block was just allocated with room for a header and alignment for it.
        unsafe {
            header.write(Header {
                previous: null_mut(),
                next: null_mut(),
                total_bytes: layout.size(),
            });
            self.link(header.as_ptr());
            header.as_ptr().cast::<u8>().add(HEADER_BYTES).cast()
        }
    }

    /// # Safety
    /// `header` is an initialized block that is in no list.
    unsafe fn link(&self, header: *mut Header) {
        let next = self.first.get();
        // SAFETY: the header is the caller's to change, and `next` is a live block of the list.
        unsafe {
            (*header).previous = null_mut();
            (*header).next = next;
            if !next.is_null() {
                (*next).previous = header;
            }
        }
        self.first.set(header);
    }

    /// # Safety
    /// `header` is a block of this heap.
    unsafe fn unlink(&self, header: *mut Header) {
        // SAFETY: the header and its neighbours are live blocks of the list.
        unsafe {
            let Header { previous, next, .. } = *header;
            match previous.is_null() {
                true => self.first.set(next),
                false => (*previous).next = next,
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let mut header = self.first.get();
        while !header.is_null() {
            // SAFETY: every block in the list is a live allocation of `allocate` or `heap_realloc` with this layout.
            unsafe {
                let Header {
                    next, total_bytes, ..
                } = *header;
                dealloc(header.cast(), layout_of(total_bytes));
                header = next;
            }
        }
    }
}

fn steps(bytes: usize) -> usize {
    bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES)
}

fn layout(bytes: usize) -> Option<Layout> {
    let total = bytes.checked_add(HEADER_BYTES)?;
    Layout::from_size_align(total, align_of::<Header>()).ok()
}

fn layout_of(total_bytes: usize) -> Layout {
    // The size was part of a layout before.
    Layout::from_size_align(total_bytes, align_of::<Header>()).unwrap_or(Layout::new::<Header>())
}

unsafe fn heap<'a>(opaque: *mut c_void) -> &'a Heap {
    // SAFETY: the runtime was made with a pointer to its heap, which outlives it; a heap is only used through `&`.
    unsafe { &*opaque.cast::<Heap>() }
}

unsafe fn header(pointer: *const c_void) -> *mut Header {
    // SAFETY: QuickJS gives back only pointers that `allocate` made.
    unsafe { pointer.cast::<u8>().sub(HEADER_BYTES).cast_mut().cast() }
}

unsafe extern "C" fn heap_malloc(opaque: *mut c_void, size: qjs::size_t) -> *mut c_void {
    unsafe { heap(opaque) }.allocate(size as usize, false)
}

unsafe extern "C" fn heap_calloc(
    opaque: *mut c_void,
    count: qjs::size_t,
    size: qjs::size_t,
) -> *mut c_void {
    match (count as usize).checked_mul(size as usize) {
        Some(bytes) => unsafe { heap(opaque) }.allocate(bytes, true),
        None => null_mut(),
    }
}

unsafe extern "C" fn heap_free(opaque: *mut c_void, pointer: *mut c_void) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: the pointer is a block of this heap.
    unsafe {
        let (heap, header) = (heap(opaque), header(pointer));
        let total_bytes = (*header).total_bytes;
        heap.unlink(header);
        heap.used_bytes.set(heap.used_bytes.get() - total_bytes);
        dealloc(header.cast(), layout_of(total_bytes));
    }
}

unsafe extern "C" fn heap_realloc(
    opaque: *mut c_void,
    pointer: *mut c_void,
    size: qjs::size_t,
) -> *mut c_void {
    if pointer.is_null() {
        return unsafe { heap_malloc(opaque, size) };
    }
    if size == 0 {
        unsafe { heap_free(opaque, pointer) };
        return null_mut();
    }
    let Some(wanted) = layout(size as usize) else {
        return null_mut();
    };
    // SAFETY: the pointer is a block of this heap; it leaves the list while its address may change.
    unsafe {
        let (heap, old) = (heap(opaque), header(pointer));
        let total_bytes = (*old).total_bytes;
        if !heap.admit(wanted.size().saturating_sub(total_bytes), wanted.size()) {
            return null_mut();
        }
        heap.unlink(old);
        let new = realloc(old.cast(), layout_of(total_bytes), wanted.size()).cast::<Header>();
        if new.is_null() {
            heap.link(old);
            return null_mut();
        }
        (*new).total_bytes = wanted.size();
        heap.link(new);
        heap.used_bytes
            .set(heap.used_bytes.get() - total_bytes + wanted.size());
        new.cast::<u8>().add(HEADER_BYTES).cast()
    }
}

unsafe extern "C" fn heap_usable_size(pointer: *const c_void) -> qjs::size_t {
    if pointer.is_null() {
        return 0;
    }
    // SAFETY: the pointer is a block of a heap.
    let total_bytes = unsafe { (*header(pointer)).total_bytes };
    (total_bytes - HEADER_BYTES) as qjs::size_t
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_host::Kind;

    fn opaque(heap: &Heap) -> *mut c_void {
        std::ptr::from_ref(heap).cast_mut().cast()
    }

    #[test]
    fn several_heaps_have_one_memory() {
        let memory = Account::root(Kind::Procedures, 4 << 20);
        let heap = || Heap::new(1 << 30, &memory);
        let (one, other) = (heap(), heap());
        let block = |heap: &Heap, bytes| unsafe { heap_malloc(opaque(heap), bytes) };
        assert!(!block(&one, 3 << 20).is_null());
        let large = block(&other, 1 << 20);
        assert!(large.is_null() && other.refused_bytes().is_some());
        let is_shared = |trap| {
            let HostTrap::Limit { kind, limit } = trap else {
                return false;
            };
            (kind, limit) == (LimitKind::ProcedureMemory, 4 << 20)
        };
        assert!(is_shared(other.trap()));
        // A small block is granted, and the call ends.
        other.forgive(Instant::now() + std::time::Duration::from_secs(60));
        let small = block(&other, 100);
        assert!(!small.is_null() && other.is_exceeded() && is_shared(other.trap()));
        drop(one);
        assert!(!block(&other, 3 << 20).is_null());
        drop(other);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn blocks_are_counted_and_all_freed_with_the_heap() {
        let heap = Heap::new(1 << 20, &Account::root(Kind::Instance, usize::MAX));
        unsafe {
            let first = heap_malloc(opaque(&heap), 100);
            let second = heap_calloc(opaque(&heap), 10, 10);
            let third = heap_malloc(opaque(&heap), 5);
            assert_eq!(heap.used_bytes(), 205 + 3 * HEADER_BYTES);
            assert_eq!(heap_usable_size(second), 100);
            assert!(std::slice::from_raw_parts(second.cast::<u8>(), 100)
                .iter()
                .all(|&byte| byte == 0));
            first.cast::<u8>().write_bytes(7, 100);
            let moved = heap_realloc(opaque(&heap), first, 5000);
            assert_eq!(
                std::slice::from_raw_parts(moved.cast::<u8>(), 100),
                [7; 100]
            );
            heap_free(opaque(&heap), second);
            assert_eq!(heap.used_bytes(), 5005 + 2 * HEADER_BYTES);
            heap_free(opaque(&heap), moved);
            heap_free(opaque(&heap), third);
            assert_eq!(heap.used_bytes(), 0);
            heap_malloc(opaque(&heap), 5);
        }
        assert!(!heap.is_exceeded());
    }

    #[test]
    fn beyond_the_limit_only_large_blocks_are_refused() {
        let heap = Heap::new(1 << 20, &Account::root(Kind::Instance, usize::MAX));
        unsafe {
            assert!(heap_malloc(opaque(&heap), 1 << 20).is_null());
            assert!(!heap.is_exceeded());
            assert_eq!(heap.refused_bytes(), Some((1 << 20) + HEADER_BYTES));
            let deadline = Instant::now() + std::time::Duration::from_secs(1000);
            heap.forgive(deadline);
            for _ in 0..20 {
                assert!(!heap_malloc(opaque(&heap), 60 << 10).is_null());
            }
            assert!(heap.is_exceeded());
            assert!(heap_malloc(opaque(&heap), 64 << 10).is_null());
            assert!(!heap_malloc(opaque(&heap), 16 << 10).is_null());
        }
    }

    #[test]
    fn when_the_time_is_over_large_blocks_are_refused() {
        let heap = Heap::new(1 << 20, &Account::root(Kind::Instance, usize::MAX));
        unsafe {
            heap.forgive(Instant::now());
            assert!(heap_malloc(opaque(&heap), 64 << 10).is_null());
            assert!(!heap_malloc(opaque(&heap), 4 << 10).is_null());
            assert!(heap.is_late());
            assert_eq!(heap.refused_bytes(), None);
        }
    }
}
