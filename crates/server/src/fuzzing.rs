//! Entries for fuzz targets: any input must be answered without panic.

use crate::ws::frame::FrameReader;

/// Reads WebSocket frames from bytes that arrive in pieces.
pub fn fuzz_frames(data: &[u8]) {
    let mut reader = FrameReader::new(&[], 4096);
    for piece in data.chunks(7) {
        reader.buffer().extend_from_slice(piece);
        loop {
            match reader.next_event() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(
            reader.pending_bytes() <= 2 * 4096 + 14,
            "no more is kept than one message and one frame"
        );
    }
}

/// Names, durations, configuration and query strings: everything that is read as text.
pub fn fuzz_text(text: &str) {
    let _ = crate::NameOrIdentity::parse(text);
    let _ = crate::parse_duration(text);
    let _ = crate::config::Config::parse(text, "config.toml".as_ref());
    let _ = crate::http::Query::parse(text).text("token");
    let _ = crate::auth::inspect_unverified(text);
}

/// A message to the tools for assistants.
pub fn fuzz_mcp(text: &str) {
    crate::http::check_mcp_message(text);
}

/// A record of the control database's journal: a state, or refused; never a panic.
pub fn fuzz_control_record(data: &[u8]) {
    crate::control::check_record_for_fuzzing(data);
}

#[cfg(test)]
mod tests {
    proptest::proptest! {
        #[test]
        fn frames(data in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            super::fuzz_frames(&data);
        }

        #[test]
        fn texts(text in ".{0,80}") {
            super::fuzz_text(&text);
        }

        /// Some of it is nearly a message.
        #[test]
        fn messages_for_tools(
            text in "(\\{\"id\":|\\[)?[\\[\\]{}:,\"a-z0-9.\\\\-]{0,40}",
            params in "[\\[\\]{}:,\"a-z0-9.\\\\-]{0,40}",
        ) {
            super::fuzz_mcp(&text);
            let call = "{\"id\":1,\"method\":\"tools/call\",\"params\":";
            super::fuzz_mcp(&format!("{call}{params}}}"));
            super::fuzz_mcp(&format!("{call}{{\"name\":\"sql\",\"arguments\":{params}}}}}}}"));
        }

        #[test]
        fn control_records(data in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            super::fuzz_control_record(&data);
        }
    }
}
