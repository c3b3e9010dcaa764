//! The stack that a call may use.
//!
//! `stack-bytes-max` is for compiled code. The frames of an interpreter are several times larger, so deep recursion would fail here
//! earlier. Where the thread has a larger stack, QuickJS gets a part of it.

/// QuickJS gets at most so many times `stack-bytes-max`.
const TIMES_MAX: usize = 8;
/// For the host's side (see `HostLimits::stack_bytes_max`).
#[cfg(target_os = "linux")]
const HOST_BYTES: usize = 256 << 10;

/// Stack for module code, from the caller's frame on. As much again stays free for a call in another instance, which a host call
/// may make: a view that is refreshed when a procedure commits.
#[inline]
pub(crate) fn stack_bytes(stack_bytes_max: usize) -> usize {
    let available = available_bytes().map(|bytes| bytes.saturating_sub(stack_bytes_max));
    share(available, stack_bytes_max)
}

fn share(available: Option<usize>, stack_bytes_max: usize) -> usize {
    let times = stack_bytes_max.saturating_mul(TIMES_MAX);
    available.map_or(stack_bytes_max, |bytes| bytes.clamp(stack_bytes_max, times))
}

/// Stack below the caller's frame, without the host's share.
#[cfg(target_os = "linux")]
#[inline]
fn available_bytes() -> Option<usize> {
    thread_local! {
        /// The lowest address of the stack; 0 if unknown.
        static LOWEST: usize = lowest_address().unwrap_or(0);
    }
    let marker = 0_u8;
    let here = std::ptr::from_ref(&marker).addr();
    let lowest = LOWEST.try_with(|lowest| *lowest).unwrap_or(0);
    match lowest {
        0 => None,
        lowest => Some(here.saturating_sub(lowest).saturating_sub(HOST_BYTES)),
    }
}

#[cfg(target_os = "linux")]
fn lowest_address() -> Option<usize> {
    // SAFETY: the attributes are initialized by the first call, and only read and destroyed if it succeeded.
    unsafe {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let mut attributes = attributes.assume_init();
        let (mut address, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
        let found = libc::pthread_attr_getstack(&attributes, &mut address, &mut size) == 0
            && libc::pthread_attr_getguardsize(&attributes, &mut guard) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        // The address may or may not include the guard.
        found.then(|| address.addr() + guard)
    }
}

#[cfg(not(target_os = "linux"))]
fn available_bytes() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_stack_is_used_and_a_small_one_is_kept() {
        let with_stack = |bytes: usize| {
            std::thread::Builder::new()
                .stack_size(bytes)
                .spawn(|| stack_bytes(512 << 10))
                .unwrap()
                .join()
                .unwrap()
        };
        assert_eq!(with_stack(64 << 20), 4 << 20);
        // A thread may reuse the larger stack of an earlier one.
        assert!(with_stack(600 << 10) >= 512 << 10);
        assert!(with_stack(3 << 20) >= 2 << 20);
        assert_eq!(share(Some(100), 200), 200);
        assert_eq!(share(Some(300), 200), 300);
        assert_eq!(share(Some(9000), 200), 1600);
        assert_eq!(share(None, 200), 200);
    }
}
