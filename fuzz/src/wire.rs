//! Messages of both sub-protocols: any input must be handled without panic, and what is accepted must
//! encode to itself.

use lightcone_types::{Encode, Reader};
use lightcone_wire::{payload, skip_server_message, ClientPayload, Protocol, ServerMessage};

/// Decodes a client payload in both versions and encodes what was understood.
pub fn fuzz_client_message(payload: &[u8]) {
    for protocol in Protocol::PREFERENCE {
        let mut messages = ClientPayload::new(protocol, payload);
        loop {
            let start = messages.position();
            match messages.next() {
                Some(Ok(message)) => {
                    assert_eq!(message.to_vec(), payload[start..messages.position()]);
                }
                Some(Err(error)) => assert!(!error.to_string().is_empty()),
                None => break,
            }
        }
    }
}

/// Decodes a server payload in both versions, and steps over its messages.
pub fn fuzz_server_payload(payload: &[u8]) {
    let Ok(body) = payload::decode_body(payload, 1 << 20) else {
        return;
    };
    for protocol in Protocol::PREFERENCE {
        if let Ok(messages) = payload::decode_messages(protocol, &body) {
            for message in messages {
                let bytes = message.to_vec();
                let again = ServerMessage::decode(&mut Reader::new(&bytes));
                assert_eq!(again, Ok(message));
            }
        }
    }
    let (mut decoding, mut skipping) = (Reader::new(&body), Reader::new(&body));
    loop {
        let decoded = ServerMessage::decode(&mut decoding);
        let skipped = skip_server_message(&mut skipping);
        assert_eq!(decoded.is_ok(), skipped.is_ok());
        if decoded.is_err() {
            break;
        }
        assert_eq!(decoding.position(), skipping.position());
    }
}
