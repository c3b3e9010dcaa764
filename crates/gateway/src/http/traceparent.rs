//! The header `traceparent` of W3C Trace Context: `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`.

use axum::http::HeaderMap;

use lightcone_database::TraceContext;

const HEADER: &str = "traceparent";
/// Of version 00; later ones may have more behind it.
const LENGTH: usize = 55;

/// What the request is a part of. None without the header, with more than one, or with one that is none.
pub(super) fn of(headers: &HeaderMap) -> Option<TraceContext> {
    let mut values = headers.get_all(HEADER).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    parse(value.to_str().ok()?)
}

fn parse(text: &str) -> Option<TraceContext> {
    if !text.is_ascii() {
        return None;
    }
    let is_known = match text.get(..3)? {
        "00-" => text.len() == LENGTH,
        "ff-" => false,
        version => {
            hex(&version[..2]).is_some()
                && (text.len() == LENGTH || text.as_bytes().get(LENGTH) == Some(&b'-'))
        }
    };
    let separated = |at: usize| text.as_bytes().get(at) == Some(&b'-');
    if !is_known || !separated(2) || !separated(35) || !separated(52) {
        return None;
    }
    let trace_id = hex(text.get(3..35)?)?;
    let span_id = hex(text.get(36..52)?)? as u64;
    hex(text.get(53..LENGTH)?)?;
    (trace_id != 0 && span_id != 0).then_some(TraceContext { trace_id, span_id })
}

/// Lower case only, as the specification says.
fn hex(digits: &str) -> Option<u128> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match digits.bytes().all(is_hex) {
        true => u128::from_str_radix(digits, 16).ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn parents_are_read() {
        let expected = TraceContext {
            trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span_id: 0x00f0_67aa_0ba9_02b7,
        };
        assert_eq!(parse(GOOD), Some(expected));
        // A version of the future.
        assert_eq!(parse(&GOOD.replacen("00", "cc", 1)), Some(expected));
        assert_eq!(
            parse(&format!("{}-more", GOOD.replacen("00", "cc", 1))),
            Some(expected)
        );
        for bad in [
            "",
            "00",
            "00-é",
            "ꬱ",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,70}") {
            let _ = parse(&text);
        }
    }
}
