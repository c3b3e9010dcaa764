//! Types: case conversion of the typespace, declared types, and where which type may stand
//! (02 §8.2, §8.5).

use std::collections::HashSet;

use lightcone_types::{AlgebraicType, ProductType, TypeRef, Typespace};

use super::context::Context;
use super::names::NameRules;
use crate::case;
use crate::def::TypeDef;
use crate::error::{clip, TypeLocation, TypeUseError, ValidationError};
use crate::raw::{CaseConversionPolicy, RawTypeDefV10};

/// The typespace with field and variant names converted.
pub(super) fn convert_typespace(policy: CaseConversionPolicy, source: &Typespace) -> Typespace {
    let mut converted = source.clone();
    if policy == CaseConversionPolicy::SnakeCase {
        converted.types.iter_mut().for_each(convert_type);
    }
    converted
}

fn convert_type(ty: &mut AlgebraicType) {
    if ty.is_special() {
        return;
    }
    match ty {
        AlgebraicType::Product(product) => {
            for element in &mut product.elements {
                if let Some(name) = &mut element.name {
                    *name = case::to_snake(name).into();
                }
                convert_type(&mut element.algebraic_type);
            }
        }
        AlgebraicType::Sum(sum) => {
            for variant in &mut sum.variants {
                if let Some(name) = &mut variant.name {
                    *name = case::to_camel(name).into();
                }
                convert_type(&mut variant.algebraic_type);
            }
        }
        AlgebraicType::Array(element) => convert_type(element),
        _ => {}
    }
}

/// Refs may lead through this many levels of undeclared types.
const DEPTH_MAX: usize = 128;

#[derive(Clone, Copy, PartialEq)]
enum Target {
    Declared,
    Unseen,
    Visiting,
    Usable,
    Unusable,
}

/// Decides which types may be used as columns, parameters and so on.
pub(super) struct TypeUses<'a> {
    typespace: &'a Typespace,
    targets: Vec<Target>,
}

impl<'a> TypeUses<'a> {
    /// `typespace` is the one before case conversion.
    pub fn new(typespace: &'a Typespace, types: &[RawTypeDefV10]) -> Self {
        let mut targets = vec![Target::Unseen; typespace.types.len()];
        for ty in types {
            if let Some(target) = targets.get_mut(ty.ty.index()) {
                *target = Target::Declared;
            }
        }
        TypeUses { typespace, targets }
    }

    pub fn is_declared(&self, ty: TypeRef) -> bool {
        self.targets.get(ty.index()) == Some(&Target::Declared)
    }

    /// Checks a type at a place where a value of it is used.
    pub fn check(&mut self, ty: &AlgebraicType) -> Result<(), TypeUseError> {
        self.check_at(ty, 0)
    }

    fn check_at(&mut self, ty: &AlgebraicType, depth: usize) -> Result<(), TypeUseError> {
        if depth > DEPTH_MAX {
            return Err(TypeUseError::TooDeep);
        }
        match ty {
            AlgebraicType::Ref(target) => self.check_ref(*target, depth),
            AlgebraicType::Array(element) => self.check_at(element, depth + 1),
            AlgebraicType::Product(product)
                if product.special().is_some() || product.is_empty() =>
            {
                Ok(())
            }
            AlgebraicType::Sum(sum) if sum.is_schedule_at() || sum.variants.is_empty() => Ok(()),
            AlgebraicType::Sum(sum) => {
                if let Some(some) = sum.as_option() {
                    self.check_at(some, depth + 1)
                } else if let Some((ok, err)) = sum.as_result() {
                    self.check_at(ok, depth + 1)?;
                    self.check_at(err, depth + 1)
                } else {
                    Err(TypeUseError::Inline(clip(&ty.type_name())))
                }
            }
            AlgebraicType::Product(_) => Err(TypeUseError::Inline(clip(&ty.type_name()))),
            _ => Ok(()),
        }
    }

    fn check_ref(&mut self, target: TypeRef, depth: usize) -> Result<(), TypeUseError> {
        let typespace = self.typespace;
        let Some(ty) = typespace.get(target) else {
            return Err(TypeUseError::InvalidRef(target));
        };
        match self.targets[target.index()] {
            Target::Declared | Target::Usable => Ok(()),
            Target::Visiting => Err(TypeUseError::Cycle(target)),
            Target::Unusable => Err(TypeUseError::Unusable(target)),
            Target::Unseen => {
                self.targets[target.index()] = Target::Visiting;
                let result = self.check_at(ty, depth + 1);
                self.targets[target.index()] = match result {
                    Ok(()) => Target::Usable,
                    Err(_) => Target::Unusable,
                };
                result
            }
        }
    }

    /// Checks the parameters of a function: all named, all of usable types.
    pub fn check_params(
        &mut self,
        cx: &mut Context,
        entity: &'static str,
        name: &str,
        params: &ProductType,
    ) {
        for (position, element) in params.elements.iter().enumerate() {
            let name = clip(name);
            let Some(parameter) = element.name().map(clip) else {
                cx.push(ValidationError::UnnamedParameter {
                    entity,
                    name,
                    position,
                });
                continue;
            };
            if let Err(reason) = self.check(&element.algebraic_type) {
                let location = TypeLocation::Parameter {
                    entity,
                    name,
                    position,
                    parameter,
                };
                cx.push(ValidationError::TypeUse { location, reason });
            }
        }
    }
}

/// Validates the declared types of a level.
pub(super) fn type_defs(
    cx: &mut Context,
    rules: &NameRules,
    uses: &mut TypeUses<'_>,
    converted: &Typespace,
    raw: Vec<RawTypeDefV10>,
) -> Vec<TypeDef> {
    let mut names = HashSet::new();
    let mut checked = HashSet::new();
    let mut defs = Vec::with_capacity(raw.len());
    for raw in raw {
        let scope = raw.source_name.scope.iter();
        let scope: Vec<String> = scope.map(|segment| rules.type_name(segment)).collect();
        let name = rules.type_name(&raw.source_name.source_name);
        for segment in &scope {
            cx.check_identifier(segment);
        }
        cx.check_identifier(&name);
        if !names.insert((scope.clone(), name.clone())) {
            let full: Vec<&str> = scope.iter().chain([&name]).map(String::as_str).collect();
            cx.push(ValidationError::DuplicateTypeName {
                name: clip(&full.join("::")),
            });
        }
        // A type with several names needs its parts checked once.
        if checked.insert(raw.ty) {
            type_body(cx, uses, &name, raw.ty);
        }
        if !raw.custom_ordering && !converted.get(raw.ty).is_some_and(is_default_order) {
            cx.push(ValidationError::TypeHasIncorrectOrdering {
                name: clip(&name),
                ty: raw.ty,
            });
        }
        defs.push(TypeDef {
            scope,
            name,
            ty: raw.ty,
            custom_ordering: raw.custom_ordering,
        });
    }
    defs
}

fn type_body(cx: &mut Context, uses: &mut TypeUses<'_>, name: &str, ty: TypeRef) {
    let typespace = uses.typespace;
    let body = typespace.get(ty).filter(|body| !body.is_special());
    match body {
        Some(AlgebraicType::Product(_)) => {}
        Some(AlgebraicType::Sum(sum)) if sum.variants.len() <= 256 => {}
        Some(AlgebraicType::Sum(sum)) => cx.push(ValidationError::TypeUse {
            location: TypeLocation::Typespace(ty),
            reason: TypeUseError::TooManyVariants(sum.variants.len()),
        }),
        _ => cx.push(ValidationError::InvalidTypeDef {
            name: clip(name),
            ty,
        }),
    }
    let parts = body.into_iter().flat_map(AlgebraicType::parts);
    for (position, (part, part_type)) in parts.enumerate() {
        match part {
            Some(part) => cx.check_identifier(part),
            None => cx.push(ValidationError::UnnamedTypeElement {
                name: clip(name),
                position,
            }),
        }
        if let Err(reason) = uses.check(part_type) {
            cx.push(ValidationError::TypeUse {
                location: TypeLocation::Typespace(ty),
                reason,
            });
        }
    }
}

/// Unnamed parts first, then named ones sorted by name.
fn is_default_order(ty: &AlgebraicType) -> bool {
    ty.parts().map(|(name, _)| name).is_sorted()
}

/// Number of parts a type without refs consists of.
pub(super) fn type_parts(ty: &AlgebraicType) -> usize {
    let below: usize = match ty {
        AlgebraicType::Array(element) => type_parts(element),
        _ => ty.parts().map(|(_, part)| type_parts(part)).sum(),
    };
    1 + below
}
