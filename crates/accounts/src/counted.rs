//! Values with the bytes that are reserved for them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::{Account, Exceeded, Reservation};

/// What a buffer costs beside its content: the allocation, and its place in a list.
const BUFFER_BYTES: usize = 128;
const CAPACITY_MIN: usize = 64;

#[derive(Default)]
pub struct Counted<T> {
    value: T,
    reservation: Reservation,
}

impl<T> Counted<T> {
    /// A value that takes as many bytes as are reserved.
    pub fn new(value: T, reservation: Reservation) -> Counted<T> {
        Counted { value, reservation }
    }

    /// A value of bounded size that counts nowhere: a constant text, a result of a test.
    pub fn constant(value: T) -> Counted<T> {
        Counted {
            value,
            reservation: Reservation::default(),
        }
    }

    /// The value without its reservation. The caller counts it anew.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Replaces the value by one that takes no more bytes.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Counted<U> {
        Counted {
            value: change(self.value),
            reservation: self.reservation,
        }
    }

    /// Reserves more bytes for what belongs to the value.
    pub fn add(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.reservation.grow(bytes)
    }

    pub fn counted_bytes(&self) -> usize {
        self.reservation.bytes()
    }
}

impl Counted<Vec<u8>> {
    pub fn empty(account: &Arc<Account>) -> Counted<Vec<u8>> {
        Counted {
            value: Vec::new(),
            reservation: Reservation::none(account),
        }
    }

    /// Counts bytes that are already allocated.
    pub fn of(bytes: Vec<u8>, account: &Arc<Account>) -> Result<Counted<Vec<u8>>, Exceeded> {
        Ok(Counted {
            reservation: account.reserve(bytes.capacity().saturating_add(BUFFER_BYTES))?,
            value: bytes,
        })
    }

    /// A copy. Its bytes are reserved before it is made.
    pub fn copy_of(bytes: &[u8], account: &Arc<Account>) -> Result<Counted<Vec<u8>>, Exceeded> {
        let reservation = account.reserve(bytes.len().saturating_add(BUFFER_BYTES))?;
        Ok(Counted {
            value: bytes.to_vec(),
            reservation,
        })
    }

    /// Appends bytes. Room is reserved before it is made; on an error the buffer is unchanged.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), Exceeded> {
        if bytes.len() > self.value.capacity() - self.value.len() {
            self.make_room(bytes.len())?;
        }
        self.value.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn make_room(&mut self, bytes: usize) -> Result<(), Exceeded> {
        let needed = self.value.len().saturating_add(bytes);
        let capacity = needed
            .max(self.value.capacity().saturating_mul(2))
            .max(CAPACITY_MIN);
        self.reservation
            .hold(capacity.saturating_add(BUFFER_BYTES))?;
        self.value.reserve_exact(capacity - self.value.len());
        Ok(())
    }

    /// Removes the content and keeps the buffer.
    pub fn clear(&mut self) {
        self.value.clear();
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl AsRef<[u8]> for Counted<Vec<u8>> {
    fn as_ref(&self) -> &[u8] {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Counted<T> {
    fn eq(&self, other: &Counted<T>) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Counted<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn a_buffer_is_counted_before_it_grows() {
        let account = Account::root(Kind::Instance, 1000);
        let mut buffer = Counted::empty(&account);
        buffer.extend(&[7; 100]).expect("room");
        assert_eq!(account.used(), 100 + BUFFER_BYTES);
        buffer.extend(&[7]).expect("room");
        assert_eq!(account.used(), 200 + BUFFER_BYTES, "what it has room for");
        assert!(buffer.extend(&[7; 900]).is_err());
        assert_eq!((buffer.len(), buffer.capacity()), (101, 200));
        buffer.clear();
        assert_eq!(account.used(), 200 + BUFFER_BYTES, "it keeps its room");
        assert!(Counted::copy_of(&[0; 900], &account).is_err());
        let text = buffer.map(|bytes| bytes.len());
        assert_eq!(*text, 0);
        assert!(account.used() > 0);
        drop(text);
        assert_eq!(account.used(), 0);
    }
}
