//! Macros that give the raw structures their BSATN and JSON forms from one field or variant list,
//! so that the order of fields and the numbers of tags are written down once.

/// A product: BSATN is the fields in order, JSON an object keyed by the field names.
macro_rules! raw_product {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $( $(#[$field_meta:meta])* pub $field:ident : $ty:ty ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $( $(#[$field_meta])* pub $field: $ty ),* }
        $crate::raw::codec::raw_product_codec!($name { $($field),* });
    };
}

/// The codec half of [`raw_product!`], for structures defined elsewhere.
macro_rules! raw_product_codec {
    ($name:ident { $($field:ident),* }) => {
        impl lightcone_types::bsatn::Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                $( lightcone_types::bsatn::Encode::encode(&self.$field, out); )*
            }
        }
        impl lightcone_types::bsatn::Decode for $name {
            fn decode(
                r: &mut lightcone_types::bsatn::Reader<'_>,
            ) -> Result<Self, lightcone_types::bsatn::DecodeError> {
                Ok($name { $( $field: lightcone_types::bsatn::Decode::decode(r)? ),* })
            }
        }
        $crate::raw::codec::raw_product_codec_json!($name { $($field),* });
    };
}

/// The JSON half of [`raw_product_codec!`].
macro_rules! raw_product_codec_json {
    ($name:ident { $($field:ident),* }) => {
        impl $crate::raw::json::ToJson for $name {
            fn to_json(&self, out: &mut String) {
                $crate::raw::json::write_object(out, &[
                    $( (stringify!($field), &self.$field as &dyn $crate::raw::json::ToJson) ),*
                ]);
            }
        }
        impl $crate::raw::json::FromJson for $name {
            fn from_json(value: &$crate::raw::json::Node<'_>) -> Result<Self, $crate::raw::json::JsonError> {
                let fields = $crate::raw::json::product_fields(value, &[ $( stringify!($field) ),* ])?;
                let mut fields = fields.into_iter();
                Ok($name { $( $field: $crate::raw::json::next_field(value, &mut fields, stringify!($field))? ),* })
            }
        }
    };
}

/// A sum, defined elsewhere: `units` are the variants without, `payloads` those with one value.
/// `as` gives the name the reference uses for the sum in its errors.
macro_rules! raw_sum_codec {
    (
        $name:ident as $sum_name:literal,
        units { $($unit_tag:literal => $unit:ident),* $(,)? },
        payloads { $($tag:literal => $variant:ident),* $(,)? }
    ) => {
        impl lightcone_types::bsatn::Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $( $name::$unit => out.push($unit_tag), )*
                    $( $name::$variant(payload) => {
                        out.push($tag);
                        lightcone_types::bsatn::Encode::encode(payload, out);
                    } )*
                }
            }
        }
        impl lightcone_types::bsatn::Decode for $name {
            fn decode(
                r: &mut lightcone_types::bsatn::Reader<'_>,
            ) -> Result<Self, lightcone_types::bsatn::DecodeError> {
                match r.read_u8()? {
                    $( $unit_tag => Ok($name::$unit), )*
                    $( $tag => Ok($name::$variant(lightcone_types::bsatn::Decode::decode(r)?)), )*
                    tag => Err($crate::raw::codec::invalid_tag(tag, $sum_name)),
                }
            }
        }
        $crate::raw::codec::raw_sum_json!(
            $name as $sum_name,
            units { $($unit_tag => $unit),* },
            payloads { $($tag => $variant),* }
        );
    };
}

/// The JSON half of [`raw_sum_codec!`].
macro_rules! raw_sum_json {
    (
        $name:ident as $sum_name:literal,
        units { $($unit_tag:literal => $unit:ident),* $(,)? },
        payloads { $($tag:literal => $variant:ident),* $(,)? }
    ) => {
        impl $crate::raw::json::ToJson for $name {
            fn to_json(&self, out: &mut String) {
                match self {
                    $( $name::$unit => $crate::raw::json::write_variant(out, stringify!($unit), &()), )*
                    $( $name::$variant(payload) => {
                        $crate::raw::json::write_variant(out, stringify!($variant), payload)
                    } )*
                }
            }
        }
        impl $crate::raw::json::FromJson for $name {
            fn from_json(value: &$crate::raw::json::Node<'_>) -> Result<Self, $crate::raw::json::JsonError> {
                const VARIANTS: &[(u8, &str)] = &[
                    $( ($unit_tag, stringify!($unit)), )*
                    $( ($tag, stringify!($variant)), )*
                ];
                let (tag, payload) = $crate::raw::json::sum_variant(value, $sum_name, VARIANTS)?;
                match tag {
                    $( $unit_tag => {
                        let () = $crate::raw::json::variant_payload(payload, stringify!($unit))?;
                        Ok($name::$unit)
                    } )*
                    $( $tag => Ok($name::$variant(
                        $crate::raw::json::variant_payload(payload, stringify!($variant))?,
                    )), )*
                    _ => Err($crate::raw::json::unknown_variant(value, &tag.to_string(), VARIANTS)),
                }
            }
        }
    };
}

pub(crate) use {
    raw_product, raw_product_codec, raw_product_codec_json, raw_sum_codec, raw_sum_json,
};

/// The error for a tag that no variant of the sum has.
pub(crate) fn invalid_tag(tag: u8, sum_name: &'static str) -> lightcone_types::bsatn::DecodeError {
    lightcone_types::bsatn::DecodeError::InvalidTag {
        tag,
        sum_name: Some(sum_name),
    }
}
