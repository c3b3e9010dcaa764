//! Compression of server payloads and when to use it (spec 05 §3.2).

use std::io::{Read, Write};

use crate::error::Error;

/// Smaller bodies are not compressed.
pub const COMPRESS_ABOVE_BYTES: usize = 1024;

/// An algorithm: the `compression` parameter of a connection, and the tag of a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Always allowed.
    None = 0,
    /// RFC 7932. The default of a client that names none.
    #[default]
    Brotli = 1,
    /// RFC 1952.
    Gzip = 2,
}

impl Compression {
    /// In the order of their tags.
    const ALL: [Compression; 3] = [Self::None, Self::Brotli, Self::Gzip];

    /// Case-sensitive.
    pub fn from_query_value(value: &str) -> Option<Self> {
        let is_it = |compression: &Self| compression.query_value() == value;
        Self::ALL.into_iter().find(is_it)
    }

    pub fn query_value(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Brotli => "Brotli",
            Self::Gzip => "Gzip",
        }
    }

    #[inline]
    pub fn tag(self) -> u8 {
        self as u8
    }

    pub fn from_tag(tag: u8) -> Result<Self, Error> {
        let found = Self::ALL.get(usize::from(tag)).copied();
        found.ok_or(Error::UnknownCompression(tag))
    }

    pub(crate) fn compress(self, body: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::None => out.extend_from_slice(body),
            Self::Brotli => {
                let parameters = brotli::enc::BrotliEncoderParams {
                    quality: 1,
                    size_hint: body.len(),
                    ..Default::default()
                };
                brotli::BrotliCompress(&mut { body }, out, &parameters)
                    .expect("reading and writing memory does not fail");
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(1));
                encoder
                    .write_all(body)
                    .and_then(|()| encoder.finish())
                    .expect("writing to memory does not fail");
            }
        }
    }

    pub(crate) fn decompress(self, data: &[u8], limit_bytes: usize) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        let take = (limit_bytes as u64).saturating_add(1);
        let read = match self {
            Self::None => data.take(take).read_to_end(&mut body),
            Self::Brotli => brotli::Decompressor::new(data, 4096)
                .take(take)
                .read_to_end(&mut body),
            Self::Gzip => flate2::read::GzDecoder::new(data)
                .take(take)
                .read_to_end(&mut body),
        };
        read.map_err(|error| Error::Decompress {
            algorithm: self.query_value(),
            detail: error.to_string(),
        })?;
        if body.len() > limit_bytes {
            return Err(Error::BodyTooLarge { limit_bytes });
        }
        Ok(body)
    }
}

/// When the server compresses.
///
/// The TypeScript client 2.10.1 asks for gzip by default. It inflates each payload asynchronously and handles it when *that*
/// payload is ready, so small payloads behind a large compressed one overtake it, and the client loses row changes. The server can
/// prevent this only by not compressing for such clients; an uncompressed payload is always legal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionPolicy {
    Never,
    /// As the client asked, above [`COMPRESS_ABOVE_BYTES`], but never with gzip. Only TypeScript clients that were told to ask for
    /// Brotli lose the order; others that ask for it handle payloads in order.
    #[default]
    KeepOrder,
    /// As the client asked, above [`COMPRESS_ABOVE_BYTES`], like the reference server.
    AsAsked,
}

impl CompressionPolicy {
    #[inline]
    pub fn choose(self, asked: Compression, body_bytes: usize) -> Compression {
        if body_bytes <= COMPRESS_ABOVE_BYTES {
            return Compression::None;
        }
        match (self, asked) {
            (Self::Never, _) | (Self::KeepOrder, Compression::Gzip) => Compression::None,
            (Self::KeepOrder | Self::AsAsked, asked) => asked,
        }
    }
}
