//! The type environment refs point into (01 §1.1.3).

use crate::algebraic_type::{AlgebraicType, ProductType, SumType, TypePart, TypeRef};

/// Nesting allowed in a resolved type; the same limit as for values, see
/// [`MAX_DEPTH`](crate::bsatn::MAX_DEPTH).
const RESOLVED_DEPTH_MAX: usize = crate::bsatn::MAX_DEPTH;
/// Nodes allowed in a resolved type. Shared refs let a small typespace describe an exponentially
/// large type; no real row type comes near this.
const RESOLVED_NODES_MAX: usize = 1 << 16;

/// The types a module's refs point to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Typespace {
    pub types: Vec<AlgebraicType>,
}

/// A type that cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    #[error("Found recursive type reference {0}")]
    Recursive(TypeRef),
    #[error("Type reference {0} out of bounds")]
    InvalidRef(TypeRef),
    #[error("type is nested deeper than {RESOLVED_DEPTH_MAX} levels; flatten it")]
    TooDeep,
    #[error("type has more than {RESOLVED_NODES_MAX} parts once its references are replaced; make it smaller")]
    TooLarge,
}

impl Typespace {
    /// A typespace without types, for ref-free types.
    pub const EMPTY: &'static Typespace = &Typespace { types: Vec::new() };

    /// A typespace of the given types.
    pub fn new(types: Vec<AlgebraicType>) -> Self {
        Self { types }
    }

    /// The type a ref points to.
    #[inline]
    pub fn get(&self, reference: TypeRef) -> Option<&AlgebraicType> {
        self.types.get(reference.index())
    }

    /// Follows refs until a constructor other than `Ref` is reached; the parts of the result may
    /// still hold refs.
    pub fn follow<'a>(&'a self, ty: &'a AlgebraicType) -> Result<&'a AlgebraicType, TypeError> {
        let mut current = ty;
        // A chain longer than the typespace must repeat a ref.
        for _ in 0..=self.types.len().min(RESOLVED_DEPTH_MAX) {
            match current {
                AlgebraicType::Ref(r) => {
                    current = self.get(*r).ok_or(TypeError::InvalidRef(*r))?;
                }
                other => return Ok(other),
            }
        }
        match current {
            AlgebraicType::Ref(_) if self.types.len() > RESOLVED_DEPTH_MAX => {
                Err(TypeError::TooDeep)
            }
            AlgebraicType::Ref(r) => Err(TypeError::Recursive(*r)),
            other => Ok(other),
        }
    }

    /// Replaces all refs; fails for recursive types and refs out of bounds. Names are kept.
    pub fn resolve(&self, ty: &AlgebraicType) -> Result<AlgebraicType, TypeError> {
        Resolver::new(self).resolve(ty, 0)
    }

    /// [`resolve`](Self::resolve) for the elements of a product.
    pub fn resolve_product(&self, ty: &ProductType) -> Result<ProductType, TypeError> {
        let elements = Resolver::new(self).resolve_parts(&ty.elements, 0)?;
        Ok(ProductType { elements })
    }
}

struct Resolver<'a> {
    typespace: &'a Typespace,
    path: Vec<TypeRef>,
    nodes: usize,
}

impl<'a> Resolver<'a> {
    fn new(typespace: &'a Typespace) -> Self {
        Self {
            typespace,
            path: Vec::new(),
            nodes: 0,
        }
    }

    fn resolve(&mut self, ty: &AlgebraicType, depth: usize) -> Result<AlgebraicType, TypeError> {
        self.nodes += 1;
        if self.nodes > RESOLVED_NODES_MAX {
            return Err(TypeError::TooLarge);
        }
        if depth >= RESOLVED_DEPTH_MAX {
            return Err(TypeError::TooDeep);
        }
        Ok(match ty {
            AlgebraicType::Ref(r) => {
                let typespace = self.typespace;
                let target = typespace.get(*r).ok_or(TypeError::InvalidRef(*r))?;
                if self.path.contains(r) {
                    return Err(TypeError::Recursive(*r));
                }
                self.path.push(*r);
                let resolved = self.resolve(target, depth + 1)?;
                self.path.pop();
                resolved
            }
            AlgebraicType::Sum(sum) => {
                let variants = self.resolve_parts(&sum.variants, depth)?;
                AlgebraicType::Sum(SumType { variants })
            }
            AlgebraicType::Product(product) => {
                let elements = self.resolve_parts(&product.elements, depth)?;
                AlgebraicType::Product(ProductType { elements })
            }
            AlgebraicType::Array(element) => {
                AlgebraicType::Array(Box::new(self.resolve(element, depth + 1)?))
            }
            leaf => leaf.clone(),
        })
    }

    fn resolve_parts(
        &mut self,
        parts: &[TypePart],
        depth: usize,
    ) -> Result<Vec<TypePart>, TypeError> {
        let parts = parts.iter().map(|part| {
            Ok(TypePart {
                name: part.name.clone(),
                algebraic_type: self.resolve(&part.algebraic_type, depth + 1)?,
            })
        });
        parts.collect()
    }
}
