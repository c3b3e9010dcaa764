//! Guest memory: every pointer is checked (spec 03 §4).

use std::ops::Range;

use lightcone_host::HostTrap;

/// `pointer` must not be null even if `len` is 0.
#[inline]
fn place(pointer: u32, len: u32) -> Result<Range<usize>, HostTrap> {
    if pointer == 0 {
        return Err(HostTrap::NullPointer);
    }
    let start = pointer as usize;
    Ok(start..start + len as usize)
}

#[inline]
pub(crate) fn slice(memory: &[u8], pointer: u32, len: u32) -> Result<&[u8], HostTrap> {
    let place = place(pointer, len)?;
    memory.get(place).ok_or(HostTrap::OutOfBounds)
}

#[inline]
pub(crate) fn slice_mut(memory: &mut [u8], pointer: u32, len: u32) -> Result<&mut [u8], HostTrap> {
    let place = place(pointer, len)?;
    memory.get_mut(place).ok_or(HostTrap::OutOfBounds)
}

pub(crate) fn text(memory: &[u8], pointer: u32, len: u32) -> Result<&str, HostTrap> {
    std::str::from_utf8(slice(memory, pointer, len)?).map_err(|_| HostTrap::InvalidUtf8)
}

#[inline]
pub(crate) fn read_u32(memory: &[u8], pointer: u32) -> Result<u32, HostTrap> {
    let bytes = slice(memory, pointer, 4)?;
    Ok(u32::from_le_bytes(
        bytes.try_into().expect("the slice has 4 bytes"),
    ))
}

#[inline]
pub(crate) fn write(memory: &mut [u8], pointer: u32, bytes: &[u8]) -> Result<(), HostTrap> {
    slice_mut(memory, pointer, bytes.len() as u32)?.copy_from_slice(bytes);
    Ok(())
}

#[inline]
pub(crate) fn write_u32(memory: &mut [u8], pointer: u32, value: u32) -> Result<(), HostTrap> {
    write(memory, pointer, &value.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_checked() {
        let mut memory = [0u8; 8];
        assert_eq!(slice(&memory, 0, 0), Err(HostTrap::NullPointer));
        assert_eq!(
            slice(&memory, 8, 0),
            Ok(&[][..]),
            "the end of memory is fine for nothing"
        );
        assert_eq!(slice(&memory, 9, 0), Err(HostTrap::OutOfBounds));
        assert_eq!(slice(&memory, 5, 4), Err(HostTrap::OutOfBounds));
        assert_eq!(
            slice(&memory, u32::MAX, u32::MAX),
            Err(HostTrap::OutOfBounds)
        );
        assert_eq!(write_u32(&mut memory, 5, 1), Err(HostTrap::OutOfBounds));
        write_u32(&mut memory, 3, 0x01020304).unwrap();
        assert_eq!(memory, [0, 0, 0, 4, 3, 2, 1, 0]);
        assert_eq!(read_u32(&memory, 3), Ok(0x01020304));
        assert_eq!(text(&[1, 0xff], 1, 1), Err(HostTrap::InvalidUtf8));
    }
}
