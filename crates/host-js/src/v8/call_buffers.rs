//! The buffers of an isolate that the host writes calls to.

use ::v8::{ArrayBuffer, BackingStore, Global, PinScope, SharedRef};

use super::state::State;
use crate::scope::CALL_BUFFER_BYTES;

pub(crate) struct CallBuffer {
    pub(crate) object: Global<ArrayBuffer>,
    /// Keeps the memory alive, whatever the module does to the object.
    store: SharedRef<BackingStore>,
}

impl CallBuffer {
    pub(super) fn new(scope: &mut PinScope<'_, '_>) -> CallBuffer {
        let buffers = State::buffers();
        let buffer = buffers.make_anyway(scope, CALL_BUFFER_BYTES);
        CallBuffer {
            object: Global::new(scope, buffer),
            store: buffer.get_backing_store(),
        }
    }

    /// Writes the parts, back to back, to the start of the buffer. No module code may run meanwhile.
    #[inline]
    pub(crate) fn write(&self, parts: [&[u8]; 2]) {
        assert!(parts[0].len() + parts[1].len() <= CALL_BUFFER_BYTES);
        let data = self.store.data().expect("the buffer is not empty");
        let data = data.as_ptr().cast::<u8>();
        // SAFETY: both lie in the buffer, whose memory lives as long as `store`, and only this thread uses it.
        unsafe {
            std::ptr::copy_nonoverlapping(parts[0].as_ptr(), data, parts[0].len());
            let rest = data.add(parts[0].len());
            std::ptr::copy_nonoverlapping(parts[1].as_ptr(), rest, parts[1].len());
        }
    }
}

/// The buffers of an isolate, one for each [`crate::scope::CallBuffer`].
pub(crate) struct CallBuffers {
    pub(crate) arguments: CallBuffer,
    pub(crate) direct: CallBuffer,
}
