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
    let _ = lightcone_control::NameOrIdentity::parse(text);
    let _ = lightcone_limits::duration::parse_duration(text);
    let _ = lightcone_node::config::Config::parse(text, "config.toml".as_ref());
    let _ = crate::http::Query::parse(text).text("token");
    let _ = lightcone_node::auth::unverified_issuer(text);
}

/// A message to the tools for assistants.
pub use crate::http::check_mcp_message as fuzz_mcp;

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
    }
}
