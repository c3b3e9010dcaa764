//! Requests and responses of HTTP.

use lightcone_host::{HttpRequest, HttpResponse};
use lightcone_types::bsatn::{Decode, Encode, Reader};

/// Requests and responses: any bytes are refused or read, and what was read encodes to the bytes it came from.
pub fn fuzz_http(data: &[u8]) {
    check::<HttpRequest>(data);
    check::<HttpResponse>(data);
}

fn check<T: Encode + Decode>(data: &[u8]) {
    let mut reader = Reader::new(data);
    if let Ok(value) = T::decode(&mut reader) {
        let read = data.len() - reader.remaining().len();
        assert_eq!(value.to_vec(), data[..read]);
    }
}
