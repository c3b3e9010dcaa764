//! Values that the vectors of 05 §16 use.
#![allow(dead_code)]

pub mod read;

use lightcone_types::{ConnectionId, Encode, Identity, Reader, Timestamp};
use lightcone_wire::RowList;

pub const TIMESTAMP: Timestamp = Timestamp(1_700_000_000_000_000);

/// Bytes of a vector; spaces and line breaks are for reading only.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| {
            (byte as char)
                .to_digit(16)
                .expect("vectors hold hex digits") as u8
        })
        .collect();
    assert_eq!(digits.len() % 2, 0, "odd number of digits in {text}");
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

pub fn identity() -> Identity {
    Identity::from_hex("c200000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d")
        .expect("an identity")
}

pub fn connection_id() -> ConnectionId {
    ConnectionId::from_hex("000102030405060708090a0b0c0d0e0f").expect("an id")
}

/// Row of `score(id: u32, v: u8)`.
pub fn score(id: u32, v: u8) -> Vec<u8> {
    let mut row = id.to_le_bytes().to_vec();
    row.push(v);
    row
}

/// Row of `person(id: u32, name: String)`.
pub fn person(id: u32, name: &str) -> Vec<u8> {
    let mut row = id.to_le_bytes().to_vec();
    row.extend((name.len() as u32).to_le_bytes());
    row.extend(name.as_bytes());
    row
}

/// The list of these rows, by the rules of 05 §5.4 alone.
pub fn row_list_bytes(rows: &[Vec<u8>]) -> Vec<u8> {
    let data = rows.concat();
    let size = rows.first().map_or(0, Vec::len);
    let is_uniform = rows.iter().all(|row| row.len() == size);
    match u16::try_from(size) {
        Ok(size) if size > 0 && is_uniform => (0_u8, size, data).to_vec(),
        _ => {
            let mut offset = 0;
            let offsets = rows.iter().map(|row| {
                offset += row.len() as u64;
                offset - row.len() as u64
            });
            (1_u8, offsets.collect::<Vec<u64>>(), data).to_vec()
        }
    }
}

pub fn row_list(rows: &[Vec<u8>]) -> RowList {
    let bytes = row_list_bytes(rows);
    RowList::decode(&mut Reader::new(&bytes)).expect("a row list")
}
