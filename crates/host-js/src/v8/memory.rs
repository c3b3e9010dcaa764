//! Limits on memory: the heap's, and that of array buffers, which lie outside of the heap.

use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// Shared between an isolate, its near-heap-limit callback and its array buffers.
pub(crate) struct MemoryGuard {
    /// The call was ended because the heap is full.
    exceeded: AtomicBool,
    isolate: ::v8::IsolateHandle,
    /// What the heap may grow by beyond the limit, so that the call can be unwound.
    reserve_bytes: usize,
}

impl MemoryGuard {
    /// Guards the isolate's heap. The result must live as long as the isolate.
    pub(crate) fn install(isolate: &mut ::v8::Isolate, heap_bytes_max: usize) -> Box<MemoryGuard> {
        let guard = Box::new(MemoryGuard {
            exceeded: AtomicBool::new(false),
            isolate: isolate.thread_safe_handle(),
            reserve_bytes: heap_bytes_max.max(RESERVE_BYTES_MIN),
        });
        let data = std::ptr::from_ref::<MemoryGuard>(&guard)
            .cast_mut()
            .cast::<c_void>();
        isolate.add_near_heap_limit_callback(near_heap_limit, data);
        guard
    }

    pub(crate) fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }
}

const RESERVE_BYTES_MIN: usize = 256 << 20;

/// V8 ends the process when its heap is full. So the call is ended instead, and the heap may grow meanwhile.
unsafe extern "C" fn near_heap_limit(data: *mut c_void, current: usize, _initial: usize) -> usize {
    // SAFETY: `install` passed a guard that outlives the isolate.
    let guard = unsafe { &*data.cast::<MemoryGuard>() };
    guard.exceeded.store(true, Ordering::Relaxed);
    guard.isolate.terminate_execution();
    current.saturating_add(guard.reserve_bytes)
}

/// What the array buffers of an isolate may use together.
pub(crate) struct BufferBudget {
    used: AtomicUsize,
    bytes_max: usize,
}

thread_local! {
    /// The host itself allocates, which must not fail: V8 would end the process.
    static AS_HOST: Cell<bool> = const { Cell::new(false) };
}

/// Makes an array buffer that the budget may not refuse. What it takes counts all the same.
pub(crate) fn as_host<R>(make: impl FnOnce() -> R) -> R {
    AS_HOST.set(true);
    let made = make();
    AS_HOST.set(false);
    made
}

const ALIGNMENT: usize = 16;

impl BufferBudget {
    /// An allocator for array buffers that answers no when the budget is spent; the module sees a RangeError.
    pub(crate) fn allocator(bytes_max: usize) -> ::v8::UniqueRef<::v8::Allocator> {
        let budget = Arc::new(BufferBudget {
            used: AtomicUsize::new(0),
            bytes_max,
        });
        // SAFETY: the functions of the table treat the handle as what it is, one count of an `Arc`, which `drop` gives back.
        unsafe { ::v8::new_rust_allocator(Arc::into_raw(budget), &VTABLE) }
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
        if !self.take(layout.size()) {
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
