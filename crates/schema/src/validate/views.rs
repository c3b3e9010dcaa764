//! Views and their primary keys (02 §8.8).

use std::collections::{HashMap, HashSet};

use lightcone_types::{AlgebraicType, ColId, TypeRef};

use super::context::Context;
use super::state::Level;
use crate::def::{TableDef, ViewDef};
use crate::error::{clip, ValidationError};
use crate::raw::{RawViewDefV10, RawViewPrimaryKeyDefV10};

/// The field whose presence marks the return type of a query view.
const QUERY_FIELD: &str = "__query__";

/// The row type of a view's return type, and whether the view returns a query.
fn row_type(return_type: &AlgebraicType) -> Option<(TypeRef, bool)> {
    let (row, is_query) = match return_type {
        AlgebraicType::Array(element) => (&**element, false),
        AlgebraicType::Sum(sum) => (sum.as_option()?, false),
        AlgebraicType::Product(product) => match &product.elements[..] {
            [only] if only.name() == Some(QUERY_FIELD) => (&only.algebraic_type, true),
            _ => return None,
        },
        _ => return None,
    };
    match row {
        AlgebraicType::Ref(row) => Some((*row, is_query)),
        _ => None,
    }
}

impl Level<'_> {
    pub(super) fn view(&mut self, raw: RawViewDefV10) -> Option<ViewDef> {
        let name = self.function("view", &raw.source_name, &raw.params);
        // A view is stored in a table of its name.
        self.claim(&name, None);
        self.check_reserved(&name);
        for parameter in &raw.params.elements {
            if let AlgebraicType::F32 | AlgebraicType::F64 = parameter.algebraic_type {
                let view = clip(&name);
                let parameter = clip(parameter.name().unwrap_or_default());
                self.cx
                    .push(ValidationError::FloatViewParameter { view, parameter });
            }
        }
        let Some((row_type, is_query)) = row_type(&raw.return_type) else {
            let (view, ty) = (clip(&name), clip(&raw.return_type.type_name()));
            self.cx
                .push(ValidationError::InvalidViewReturnType { view, ty });
            return None;
        };
        let columns = self.columns("view", &name, row_type)?;
        Some(ViewDef {
            name,
            source_name: raw.source_name,
            index: raw.index,
            id: raw.index,
            is_public: raw.is_public,
            is_anonymous: raw.is_anonymous,
            params: raw.params,
            params_typespace: self.converted.clone(),
            return_type: raw.return_type,
            is_query,
            row_type,
            columns,
            primary_key: None,
        })
    }
}

pub(super) fn primary_keys(
    cx: &mut Context,
    views: &mut [ViewDef],
    tables: &[TableDef],
    raw: Vec<RawViewPrimaryKeyDefV10>,
) {
    let mut by_source_name: HashMap<String, usize> = HashMap::new();
    for (i, view) in views.iter().enumerate() {
        by_source_name.entry(view.source_name.clone()).or_insert(i);
    }
    let mut declared = HashSet::new();
    for raw in raw {
        let Some(&position) = by_source_name.get(&raw.view_source_name) else {
            cx.push(ValidationError::ViewPrimaryKeyViewNotFound {
                view: clip(&raw.view_source_name),
            });
            continue;
        };
        let view = &mut views[position];
        if !declared.insert(position) {
            cx.push(ValidationError::RepeatedViewPrimaryKey {
                view: clip(&view.name),
            });
            continue;
        }
        match &raw.columns[..] {
            _ if view.has_parameters() => {
                let view = clip(&view.name);
                cx.push(ValidationError::ViewPrimaryKeyWithParameters { view });
            }
            [] => {
                declared.remove(&position);
            }
            [column] => match view.columns.iter().position(|c| c.source_name == *column) {
                Some(i) => view.primary_key = u16::try_from(i).ok().map(ColId),
                None => {
                    let (view, column) = (clip(&view.name), clip(column));
                    cx.push(ValidationError::ViewPrimaryKeyColumnNotFound { view, column });
                }
            },
            _ => cx.push(ValidationError::MultipleViewPrimaryKeyColumns {
                view: clip(&view.name),
            }),
        }
    }
    // A query view without a declared key, and without parameters, has that of the tables with the same row type, if they agree.
    let mut by_row_type: HashMap<TypeRef, Option<ColId>> = HashMap::new();
    for table in tables {
        by_row_type
            .entry(table.row_type)
            .and_modify(|key| *key = key.filter(|key| Some(*key) == table.primary_key))
            .or_insert(table.primary_key);
    }
    for (i, view) in views.iter_mut().enumerate() {
        if view.is_query && !view.has_parameters() && !declared.contains(&i) {
            view.primary_key = by_row_type.get(&view.row_type).copied().flatten();
        }
    }
}
