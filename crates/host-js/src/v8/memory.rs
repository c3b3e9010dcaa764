//! Limits on memory: the heap's, and that of array buffers, which lie outside of the heap.

use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// Guards the heap of an isolate.
pub(crate) struct MemoryGuard {
    /// The call was ended because the heap is full.
    exceeded: AtomicBool,
    /// The limit was raised, though the heap is not full.
    raised: AtomicBool,
    isolate: ::v8::IsolateHandle,
    heap_bytes_max: usize,
    buffers: Arc<BufferBudget>,
}

impl MemoryGuard {
    /// Guards the isolate's heap. The result must live as long as the isolate.
    pub(crate) fn install(
        isolate: &mut ::v8::Isolate,
        heap_bytes_max: usize,
        buffers: Arc<BufferBudget>,
    ) -> Box<MemoryGuard> {
        let guard = Box::new(MemoryGuard {
            exceeded: AtomicBool::new(false),
            raised: AtomicBool::new(false),
            isolate: isolate.thread_safe_handle(),
            heap_bytes_max,
            buffers,
        });
        guard.watch(isolate);
        guard
    }

    /// A guard that guards nothing.
    pub(crate) fn none(isolate: &::v8::Isolate) -> Box<MemoryGuard> {
        Box::new(MemoryGuard {
            exceeded: AtomicBool::new(false),
            raised: AtomicBool::new(false),
            isolate: isolate.thread_safe_handle(),
            heap_bytes_max: 0,
            buffers: BufferBudget::new(0),
        })
    }

    fn watch(&self, isolate: &mut ::v8::Isolate) {
        let data = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        isolate.add_near_heap_limit_callback(near_heap_limit, data);
    }

    /// The heap was full. The isolate should not be used any more.
    pub(crate) fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Takes back what was granted for a failed allocation of an array buffer. Between calls.
    #[inline]
    pub(crate) fn settle(&self, isolate: &mut ::v8::Isolate) {
        if self.raised.load(Ordering::Relaxed) {
            self.raised.store(false, Ordering::Relaxed);
            isolate.remove_near_heap_limit_callback(near_heap_limit, self.heap_bytes_max);
            self.watch(isolate);
        }
    }
}

/// What the heap may grow by at least beyond its limit, so that a call can be unwound.
const RESERVE_BYTES_MIN: usize = 256 << 20;
/// Granted when V8 is in need though the heap is not full.
const RAISE_BYTES: usize = 16 << 20;

/// V8 ends the process when its heap is full. So the call is ended instead, and the heap may grow meanwhile.
///
/// V8 asks as well when an array buffer can't be allocated, as its last resort; that is a RangeError and no reason to end the
/// call, as long as the heap has room.
unsafe extern "C" fn near_heap_limit(data: *mut c_void, current: usize, _initial: usize) -> usize {
    // SAFETY: `watch` passed a guard that outlives the isolate.
    let guard = unsafe { &*data.cast::<MemoryGuard>() };
    if guard.buffers.refused.swap(false, Ordering::Relaxed)
        && !guard.raised.swap(true, Ordering::Relaxed)
    {
        return current.saturating_add(RAISE_BYTES);
    }
    guard.exceeded.store(true, Ordering::Relaxed);
    guard.isolate.terminate_execution();
    current.saturating_add(guard.heap_bytes_max.max(RESERVE_BYTES_MIN))
}

/// What the array buffers of an isolate may use together.
pub(crate) struct BufferBudget {
    used: AtomicUsize,
    bytes_max: usize,
    /// The last allocation failed.
    refused: AtomicBool,
}

thread_local! {
    /// The host itself allocates, which must not fail: V8 would end the process.
    static AS_HOST: Cell<bool> = const { Cell::new(false) };
}

/// Makes an array buffer that the budget may not refuse. What it takes counts all the same.
pub(crate) fn as_host<R>(make: impl FnOnce() -> R) -> R {
    /// Ends the exception also if making it panics.
    struct AsHost;
    impl Drop for AsHost {
        fn drop(&mut self) {
            AS_HOST.set(false);
        }
    }
    AS_HOST.set(true);
    let _as_host = AsHost;
    make()
}

const ALIGNMENT: usize = 16;

impl BufferBudget {
    pub(crate) fn new(bytes_max: usize) -> Arc<BufferBudget> {
        Arc::new(BufferBudget {
            used: AtomicUsize::new(0),
            bytes_max,
            refused: AtomicBool::new(false),
        })
    }

    /// An allocator for array buffers that answers no when the budget is spent; the module sees a RangeError.
    pub(crate) fn allocator(self: Arc<Self>) -> ::v8::UniqueRef<::v8::Allocator> {
        // SAFETY: the functions of the table treat the handle as what it is, one count of an `Arc`, which `drop` gives back.
        unsafe { ::v8::new_rust_allocator(Arc::into_raw(self), &VTABLE) }
    }

    fn take(&self, bytes: usize) -> bool {
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            match used.checked_add(bytes) {
                Some(after) if after <= self.bytes_max || AS_HOST.get() => {
                    match self.used.compare_exchange_weak(
                        used,
                        after,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    ) {
                        Ok(_) => return true,
                        Err(now) => used = now,
                    }
                }
                _ => return false,
            }
        }
    }

    fn allocate(&self, bytes: usize, zeroed: bool) -> *mut c_void {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGNMENT) else {
            return std::ptr::null_mut();
        };
        let taken = self.take(layout.size());
        self.refused.store(!taken, Ordering::Relaxed);
        if !taken {
            return std::ptr::null_mut();
        }
        // SAFETY: the layout is not empty.
        let data = unsafe {
            match zeroed {
                true => alloc_zeroed(layout),
                false => alloc(layout),
            }
        };
        if data.is_null() {
            self.used.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        data.cast()
    }
}

static VTABLE: ::v8::RustAllocatorVtable<BufferBudget> = ::v8::RustAllocatorVtable {
    allocate: {
        unsafe extern "C" fn allocate(budget: &BufferBudget, bytes: usize) -> *mut c_void {
            budget.allocate(bytes, true)
        }
        allocate
    },
    allocate_uninitialized: {
        unsafe extern "C" fn allocate(budget: &BufferBudget, bytes: usize) -> *mut c_void {
            budget.allocate(bytes, false)
        }
        allocate
    },
    free: {
        unsafe extern "C" fn free(budget: &BufferBudget, data: *mut c_void, bytes: usize) {
            if data.is_null() {
                return;
            }
            let size = bytes.max(1);
            budget.used.fetch_sub(size, Ordering::Relaxed);
            // SAFETY: V8 gives back what `allocate` made, with the length that it asked for.
            unsafe {
                dealloc(
                    data.cast(),
                    Layout::from_size_align_unchecked(size, ALIGNMENT),
                );
            }
        }
        free
    },
    drop: {
        unsafe extern "C" fn drop(budget: *const BufferBudget) {
            // SAFETY: the count that `allocator` gave away.
            std::mem::drop(unsafe { Arc::from_raw(budget) });
        }
        drop
    },
};
