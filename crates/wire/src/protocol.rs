//! The versions of the protocol, and which one a connection gets (spec 05 §2.3).

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// One message per payload.
    V2,
    /// Any number of messages per payload.
    V3,
}

impl Protocol {
    /// All versions, the preferred one first.
    pub const PREFERENCE: [Protocol; 2] = [Protocol::V3, Protocol::V2];

    /// The token in the WebSocket handshake.
    pub fn token(self) -> &'static str {
        match self {
            Self::V2 => "v2.bsatn.spacetimedb",
            Self::V3 => "v3.bsatn.spacetimedb",
        }
    }

    /// For error texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
        }
    }

    /// Case-sensitive.
    pub fn from_token(token: &str) -> Option<Self> {
        Self::PREFERENCE
            .into_iter()
            .find(|protocol| protocol.token() == token)
    }

    /// Selects among the values of `Sec-WebSocket-Protocol` lines: the server's preference decides, not the client's order (§2.3).
    pub fn select<'a>(header_values: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut selected = None;
        for value in header_values {
            for token in value.split(',') {
                match Self::from_token(token.trim_matches([' ', '\t'])) {
                    Some(Self::V3) => return Some(Self::V3),
                    Some(Self::V2) => selected = Some(Self::V2),
                    None => {}
                }
            }
        }
        selected
    }
}
