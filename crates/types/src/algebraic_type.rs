//! The 20 type constructors (01 §1.1) and the derived shapes built from them.

use std::fmt;

use crate::integer::{for_each_integer, IntegerType};

/// An index into the surrounding [`Typespace`](crate::Typespace).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeRef(pub u32);

impl TypeRef {
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A structural type. Equality includes the names of elements and variants; a `Ref` equals only a
/// `Ref` with the same index (01 §1.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AlgebraicType {
    Ref(TypeRef),
    Sum(SumType),
    Product(ProductType),
    Array(Box<AlgebraicType>),
    String,
    Bool,
    /// One of 12 constructors, which have names too: `AlgebraicType::U64`.
    Integer(IntegerType),
    F32,
    F64,
}

/// A tagged choice; the tag of a value is the position of its variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SumType {
    pub variants: Vec<SumTypeVariant>,
}

/// An ordered record; the order of elements is the order of fields in every encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProductType {
    pub elements: Vec<ProductTypeElement>,
}

/// A variant of a sum, or an element of a product.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypePart {
    pub name: Option<Box<str>>,
    pub algebraic_type: AlgebraicType,
}

/// A variant of a sum. A variant without payload has the unit type.
pub type SumTypeVariant = TypePart;
pub type ProductTypeElement = TypePart;

impl TypePart {
    pub fn new(name: impl Into<Box<str>>, algebraic_type: AlgebraicType) -> Self {
        Self {
            name: Some(name.into()),
            algebraic_type,
        }
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The part of this name, and its position.
    pub fn find<'p>(parts: &'p [TypePart], name: &str) -> Option<(usize, &'p TypePart)> {
        let mut parts = parts.iter().enumerate();
        parts.find(|(_, part)| part.name() == Some(name))
    }

    fn list<N: Into<Box<str>>>(
        parts: impl IntoIterator<Item = (N, AlgebraicType)>,
    ) -> Vec<TypePart> {
        let parts = parts.into_iter();
        parts.map(|(name, ty)| TypePart::new(name, ty)).collect()
    }
}

impl SumType {
    pub fn new<N: Into<Box<str>>>(variants: impl IntoIterator<Item = (N, AlgebraicType)>) -> Self {
        let variants = TypePart::list(variants);
        Self { variants }
    }

    /// True if every variant carries unit; such values are one tag byte and may be index keys.
    pub fn is_simple_enum(&self) -> bool {
        !self.variants.is_empty() && self.variants.iter().all(|v| v.algebraic_type.is_unit())
    }
}

impl ProductType {
    pub fn new<N: Into<Box<str>>>(elements: impl IntoIterator<Item = (N, AlgebraicType)>) -> Self {
        let elements = TypePart::list(elements);
        Self { elements }
    }

    pub fn unit() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.elements.len()
    }

    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

impl AlgebraicType {
    /// The product without elements: 0 bytes in BSATN.
    pub fn unit() -> Self {
        Self::Product(ProductType::unit())
    }

    /// The sum without variants: it has no values.
    pub fn never() -> Self {
        Self::Sum(SumType::default())
    }

    pub fn bytes() -> Self {
        Self::array(Self::U8)
    }

    pub fn array(element: AlgebraicType) -> Self {
        Self::Array(Box::new(element))
    }

    pub fn product<N: Into<Box<str>>>(
        elements: impl IntoIterator<Item = (N, AlgebraicType)>,
    ) -> Self {
        Self::Product(ProductType::new(elements))
    }

    pub fn sum<N: Into<Box<str>>>(variants: impl IntoIterator<Item = (N, AlgebraicType)>) -> Self {
        Self::Sum(SumType::new(variants))
    }

    /// A sum whose named variants carry nothing.
    pub fn simple_enum<N: Into<Box<str>>>(names: impl IntoIterator<Item = N>) -> Self {
        Self::sum(names.into_iter().map(|n| (n, Self::unit())))
    }

    pub fn reference(index: u32) -> Self {
        Self::Ref(TypeRef(index))
    }

    pub fn is_unit(&self) -> bool {
        matches!(self, Self::Product(p) if p.is_empty())
    }

    pub fn is_never(&self) -> bool {
        matches!(self, Self::Sum(s) if s.variants.is_empty())
    }

    pub fn is_bytes(&self) -> bool {
        matches!(self, Self::Array(e) if **e == Self::U8)
    }

    /// True for a sum, with at least one variant, whose variants all carry unit.
    pub fn is_simple_enum(&self) -> bool {
        matches!(self, Self::Sum(s) if s.is_simple_enum())
    }

    /// Which integer type this is, if it is one.
    pub fn integer(&self) -> Option<IntegerType> {
        match self {
            Self::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    pub fn is_integer(&self) -> bool {
        self.integer().is_some()
    }

    pub fn is_float(&self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// The elements of a product or the variants of a sum, with their names; nothing of any other type.
    pub fn parts(&self) -> impl Iterator<Item = (Option<&str>, &AlgebraicType)> {
        let parts = match self {
            Self::Product(product) => &product.elements[..],
            Self::Sum(sum) => &sum.variants[..],
            _ => &[],
        };
        parts.iter().map(|part| (part.name(), &part.algebraic_type))
    }

    pub fn as_product(&self) -> Option<&ProductType> {
        match self {
            Self::Product(p) => Some(p),
            _ => None,
        }
    }

    pub fn as_sum(&self) -> Option<&SumType> {
        match self {
            Self::Sum(s) => Some(s),
            _ => None,
        }
    }

    /// The BSATN tag of the constructor, which is also its place in the type-of-types.
    pub fn tag(&self) -> u8 {
        match self {
            Self::Ref(_) => 0,
            Self::Sum(_) => 1,
            Self::Product(_) => 2,
            Self::Array(_) => 3,
            Self::String => 4,
            Self::Bool => 5,
            Self::Integer(integer) => *integer as u8,
            Self::F32 => 18,
            Self::F64 => 19,
        }
    }

    /// The JSON name of the constructor (01 §1.1.1).
    pub fn constructor_name(&self) -> &'static str {
        match self {
            Self::Ref(_) => "Ref",
            Self::Sum(_) => "Sum",
            Self::Product(_) => "Product",
            Self::Array(_) => "Array",
            Self::String => "String",
            Self::Bool => "Bool",
            Self::Integer(integer) => integer.name(),
            Self::F32 => "F32",
            Self::F64 => "F64",
        }
    }

    /// The type as messages spell it: `U64`, `Array<T>`, `(name: T, …)`, `(name: T | name: T)`,
    /// `()`, `(|)` (08 §6). Same as `Display`.
    pub fn type_name(&self) -> String {
        self.to_string()
    }

    /// The type without parts that has the given tag.
    pub(crate) fn leaf_from_tag(tag: u8) -> Option<Self> {
        match tag {
            4 => Some(Self::String),
            5 => Some(Self::Bool),
            18 => Some(Self::F32),
            19 => Some(Self::F64),
            _ => IntegerType::from_tag(tag).map(Self::Integer),
        }
    }
}

macro_rules! integer_constructors {
    ($($name:ident = $tag:literal, $rust:ident, $sign:ident;)*) => {
        impl AlgebraicType {
            $(pub const $name: AlgebraicType = AlgebraicType::Integer(IntegerType::$name);)*
        }
    };
}

for_each_integer!(integer_constructors);

impl From<ProductType> for AlgebraicType {
    fn from(value: ProductType) -> Self {
        Self::Product(value)
    }
}

impl From<SumType> for AlgebraicType {
    fn from(value: SumType) -> Self {
        Self::Sum(value)
    }
}

impl From<TypeRef> for AlgebraicType {
    fn from(value: TypeRef) -> Self {
        Self::Ref(value)
    }
}

impl fmt::Display for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "&{}", self.0)
    }
}

impl fmt::Display for AlgebraicType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ref(r) => r.fmt(f),
            Self::Sum(s) => s.fmt(f),
            Self::Product(p) => p.fmt(f),
            Self::Array(e) => write!(f, "Array<{e}>"),
            leaf => f.write_str(leaf.constructor_name()),
        }
    }
}

impl fmt::Display for ProductType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_parts(f, &self.elements, ", ")
    }
}

impl fmt::Display for SumType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.variants.is_empty() {
            true => f.write_str("(|)"),
            false => write_parts(f, &self.variants, " | "),
        }
    }
}

fn write_parts(f: &mut fmt::Formatter<'_>, parts: &[TypePart], separator: &str) -> fmt::Result {
    f.write_str("(")?;
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        match part.name() {
            Some(name) => write!(f, "{name}: {}", part.algebraic_type)?,
            None => write!(f, "{index}: {}", part.algebraic_type)?,
        }
    }
    f.write_str(")")
}
