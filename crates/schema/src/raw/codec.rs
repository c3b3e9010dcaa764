//! Macros that give the raw structures their BSATN form and their type from one field or variant list, so that the order of
//! fields and the numbers of tags are written down once.

/// Products: the fields in order.
macro_rules! raw_products {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident { $( $(#[$field_meta:meta])* pub $field:ident : $ty:ty ),* $(,)? }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $( $(#[$field_meta])* pub $field: $ty ),* }

        lightcone_types::bsatn_products! { $name { $($field),* } }

        impl $crate::raw::typed::Typed for $name {
            fn ty() -> lightcone_types::AlgebraicType {
                lightcone_types::AlgebraicType::product([
                    $( (stringify!($field), <$ty as $crate::raw::typed::Typed>::ty()) ),*
                ])
            }
        }
    )*};
}

/// A sum, defined elsewhere: `units` are the variants without, `payloads` those with one value.
/// `as` gives the name the reference uses for the sum in its errors.
macro_rules! raw_sum_codec {
    (
        $name:ident as $sum_name:literal,
        units { $($unit_tag:literal => $unit:ident),* $(,)? },
        payloads { $($tag:literal => $variant:ident($payload:ty)),* $(,)? }
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
                    tag => Err(lightcone_types::bsatn::DecodeError::invalid_tag(tag, $sum_name)),
                }
            }
        }
        impl $crate::raw::typed::Typed for $name {
            /// Variants without a value have the lower tags.
            fn ty() -> lightcone_types::AlgebraicType {
                lightcone_types::AlgebraicType::sum([
                    $( (stringify!($unit), lightcone_types::AlgebraicType::unit()), )*
                    $( (stringify!($variant), <$payload as $crate::raw::typed::Typed>::ty()), )*
                ])
            }
        }
    };
}

/// Products of version 9 and version 10 that differ in the name of their first field only, and turn into each other.
macro_rules! raw_twins {
    ($(
        $v9:ident . $name9:ident, $v10:ident . $(#[$name_meta:meta])* $name10:ident : $name_ty:ty
        { $( $(#[$field_meta:meta])* $field:ident : $ty:ty ),* $(,)? }
    )*) => {$(
        $crate::raw::codec::raw_products! {
            pub struct $v9 { pub $name9: $name_ty, $( $(#[$field_meta])* pub $field: $ty ),* }
            pub struct $v10 {
                $(#[$name_meta])* pub $name10: $name_ty,
                $( $(#[$field_meta])* pub $field: $ty ),*
            }
        }
        impl From<$v9> for $v10 {
            fn from(of: $v9) -> Self {
                $v10 { $name10: of.$name9, $( $field: of.$field ),* }
            }
        }
        impl From<$v10> for $v9 {
            fn from(of: $v10) -> Self {
                $v9 { $name9: of.$name10, $( $field: of.$field ),* }
            }
        }
    )*};
}

pub(crate) use {raw_products, raw_sum_codec, raw_twins};
