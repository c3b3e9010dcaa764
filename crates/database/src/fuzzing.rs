//! Entry points for fuzz targets.

use lightcone_snapshot::ObjectHash;

use crate::history::Known;

/// Takes `data` as the file `history`, as it is and with a correct checksum.
///
/// # Panics
/// If what is known does not survive its own encoding.
pub fn fuzz_history(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mended = format!("{text}blake3 {}\n", ObjectHash::of(data));
    for text in [text, mended.as_str()] {
        if let Ok(known) = text.parse::<Known>() {
            assert_eq!(known.to_string().parse(), Ok(known));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_history_is_survived(data in prop::collection::vec(any::<u8>(), 0..60), text in "((backed-up |snapshot |blake3 )?[0-9a-f +-]{0,60}\n){0,5}") {
            fuzz_history(&data);
            fuzz_history(text.as_bytes());
        }

        #[test]
        fn any_history_is_read_as_it_was_written(offset in any::<u64>(), hash in "[0-9a-f]{32}", times in prop::collection::vec((any::<u64>(), any::<i64>()), 0..5)) {
            let mut text = format!("backed-up {}-{hash}\n", offset >> 2);
            for (offset, time) in times {
                text.push_str(&format!("snapshot {offset} {time}\n"));
            }
            fuzz_history(text.as_bytes());
            let whole = format!("{text}blake3 {}\n", ObjectHash::of(text.as_bytes()));
            let known = whole.parse::<Known>().expect("it is whole");
            prop_assert_eq!(known.backed_up.map(|place| place.offset.get()), Some(offset >> 2));
        }
    }
}
