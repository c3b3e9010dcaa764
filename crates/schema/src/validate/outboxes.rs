//! Outbox tables: which rows are messages, and who hears of their results (02 §8.7a).

use lightcone_types::{AlgebraicType, ColId, SpecialProduct, Typespace};

use super::context::Context;
use super::functions::positions;
use crate::def::{ReducerDef, TableDef, Visibility};
use crate::error::{clip, ValidationError};
use crate::raw::RawOutboxDefV10;
use crate::table::OutboxDef;

/// Attaches outboxes to their tables, and hides the reducers that hear of results from clients.
pub(super) fn outboxes(
    cx: &mut Context,
    types: &Typespace,
    tables: &mut [TableDef],
    reducers: &mut [ReducerDef],
    raw: Option<Vec<RawOutboxDefV10>>,
) {
    for raw in raw.into_iter().flatten() {
        let named = |table: &TableDef| table.source_name == raw.table_name;
        let Some(table) = tables.iter().position(named) else {
            let name = clip(&raw.table_name);
            cx.push(ValidationError::OutboxTableNotFound { name });
            continue;
        };
        match outbox(types, &tables[table], reducers, raw) {
            Ok((outbox, on_result)) => {
                tables[table].outbox = Some(outbox);
                if let Some(reducer) = on_result {
                    reducers[reducer].visibility = Visibility::Private;
                }
            }
            Err(error) => cx.push(error),
        }
    }
}

/// The outbox, and the position of the reducer that hears of its results.
fn outbox(
    types: &Typespace,
    table: &TableDef,
    reducers: &[ReducerDef],
    raw: RawOutboxDefV10,
) -> Result<(OutboxDef, Option<usize>), ValidationError> {
    let wrong = |problem: &str| ValidationError::Outbox {
        table: clip(&table.name),
        problem: problem.to_owned(),
    };
    let column = |id: ColId| table.columns.get(id.index());
    if table.outbox.is_some() {
        return Err(wrong("has more than one outbox"));
    }
    if table.is_event {
        return Err(wrong("cannot be an event table"));
    }
    if table.schedule.is_some() {
        return Err(wrong("cannot also be a scheduled table"));
    }
    let key = table.primary_key.and_then(column);
    if key.is_none_or(|key| key.ty != AlgebraicType::U64) {
        return Err(wrong("needs one column of type u64 as its primary key"));
    }
    let Some(target) = column(raw.target_column) else {
        return Err(wrong("has no column for its target"));
    };
    if table.primary_key == Some(raw.target_column) {
        return Err(wrong("cannot have its target in its primary key"));
    }
    if target.ty.special_product() != Some(SpecialProduct::Identity)
        && target.ty != AlgebraicType::U256
    {
        return Err(wrong("must have its target in a column of type Identity"));
    }
    if raw.arg_columns.iter().any(|&id| column(id).is_none()) {
        return Err(wrong("has no column for an argument"));
    }
    let on_result = raw
        .on_result_reducer
        .map(|name| callback(types, table, reducers, &name));
    let on_result = on_result.transpose()?;
    let outbox = OutboxDef {
        remote_reducer: raw.remote_reducer,
        target_column: raw.target_column,
        arg_columns: raw.arg_columns,
        on_result: on_result.map(|reducer| reducers[reducer].name.clone()),
        signature_hash: raw.signature_hash,
    };
    Ok((outbox, on_result))
}

/// The position of the reducer that hears of results.
fn callback(
    types: &Typespace,
    table: &TableDef,
    reducers: &[ReducerDef],
    name: &str,
) -> Result<usize, ValidationError> {
    if name.contains('.') || name.contains("::") {
        return Err(ValidationError::OutboxCallbackElsewhere { name: clip(name) });
    }
    let wrong = |problem: String| ValidationError::Outbox {
        table: clip(&table.name),
        problem,
    };
    let sources = positions(reducers.iter().map(|reducer| reducer.source_name.as_str()));
    let Some(&found) = sources.get(name) else {
        let name = clip(name);
        return Err(wrong(format!("has no reducer `{name}` for its results")));
    };
    let result = AlgebraicType::result(AlgebraicType::unit(), AlgebraicType::String);
    let is_result = |ty: &AlgebraicType| types.resolve(ty).is_ok_and(|ty| ty == result);
    let takes_result = match &reducers[found].params.elements[..] {
        [row, of] => {
            row.algebraic_type == AlgebraicType::Ref(table.row_type)
                && is_result(&of.algebraic_type)
        }
        _ => false,
    };
    match takes_result {
        true => Ok(found),
        false => Err(wrong(format!(
            "must give its results to a reducer that takes a row of it and a Result<(), String>, which `{}` does not",
            clip(name)
        ))),
    }
}
