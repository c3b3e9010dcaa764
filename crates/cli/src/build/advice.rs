//! What in a module's definition is allowed and probably not what was meant.

use lightcone_schema::{IndexDef, ModuleDef, TableAccess, TableDef};
use lightcone_types::{AlgebraicType, ColId};

/// One sentence for each, in the order of the tables.
pub fn of(def: &ModuleDef) -> Vec<String> {
    let mut advice = Vec::new();
    let has_functions = def
        .reducers
        .iter()
        .any(|reducer| reducer.lifecycle.is_none())
        || !def.procedures.is_empty()
        || !def.http_handlers.is_empty();
    if !def.tables.is_empty() && !has_functions {
        advice.push(
            "the module has tables and no function that changes them. Only what `src/index.ts` exports is part of it: \
             `export const add = spacetimedb.reducer(…)`"
                .to_owned(),
        );
    }
    for table in &def.tables {
        of_table(table, &mut advice);
    }
    advice
}

fn of_table(table: &TableDef, advice: &mut Vec<String>) {
    let name = &table.name;
    if table.schedule.is_some() && table.access == TableAccess::Public {
        advice.push(format!(
            "every client can read what is planned in `{name}`: a schedule table need not be public"
        ));
    }
    for constraint in &table.constraints {
        let columns = constraint.columns.iter();
        let floats = columns.filter(|column| is_float(table, **column));
        advice.extend(floats.map(|column| {
            format!(
                "`{name}`.`{}` is unique and a float: what is nearly equal is not, nor are 0 and -0",
                column_name(table, *column)
            )
        }));
    }
    for (place, index) in table.indexes.iter().enumerate() {
        let others = table.indexes.iter().enumerate();
        let better = others
            .filter(|(other_place, _)| *other_place != place)
            .find(|(other_place, other)| serves_for(other, *other_place, index, place));
        if let Some((_, better)) = better {
            advice.push(format!(
                "index `{}` of `{name}` costs time with every row that changes, and `{}` does the same",
                index.name, better.name
            ));
        }
    }
}

/// Does one index find all that another finds? Of two that are equal the first is the better one.
fn serves_for(index: &IndexDef, place: usize, other: &IndexDef, other_place: usize) -> bool {
    use lightcone_schema::IndexAlgorithm::BTree;
    let (columns, others) = (index.algorithm.columns(), other.algorithm.columns());
    let BTree(_) = index.algorithm else {
        return false;
    };
    // A unique one does more than find.
    if other.unique || !matches!(other.algorithm, BTree(_)) || !columns.starts_with(others) {
        return false;
    }
    columns.len() > others.len() || index.unique || place < other_place
}

fn column_name(table: &TableDef, column: ColId) -> &str {
    let column = table.columns.get(usize::from(column.0));
    column.map_or("?", |column| &column.name)
}

fn is_float(table: &TableDef, column: ColId) -> bool {
    let column = table.columns.get(usize::from(column.0));
    column.is_some_and(|column| matches!(column.ty, AlgebraicType::F32 | AlgebraicType::F64))
}

#[cfg(test)]
mod tests {
    use lightcone_schema::raw::{
        FunctionVisibility, RawConstraintData, RawConstraintDefV10, RawIndexAlgorithm,
        RawIndexDefV10, RawModuleDefV10, RawModuleDefV10Section as Section, RawReducerDefV10,
        RawTableDefV10, RawUniqueConstraintData,
    };
    use lightcone_schema::{RawModuleDef, TableKind};
    use lightcone_types::{ProductType, TypeRef, Typespace};

    use super::*;

    /// A table of an id and two numbers, with these unique columns and indexes.
    fn module(unique: &[u16], indexes: &[&[u16]], more: Vec<Section>) -> ModuleDef {
        let columns = |columns: &[u16]| columns.iter().map(|c| ColId(*c)).collect::<Vec<_>>();
        let row = AlgebraicType::product([
            ("id", AlgebraicType::U32),
            ("x", AlgebraicType::U64),
            ("y", AlgebraicType::F64),
        ]);
        let index = |over: &[u16]| RawIndexDefV10 {
            source_name: Some(over.iter().map(|column| format!("of{column}")).collect()),
            accessor_name: None,
            algorithm: RawIndexAlgorithm::BTree(columns(over)),
        };
        let table = RawTableDefV10 {
            source_name: "place".into(),
            product_type_ref: TypeRef(0),
            primary_key: vec![],
            indexes: indexes.iter().map(|over| index(over)).collect(),
            constraints: unique
                .iter()
                .map(|column| RawConstraintDefV10 {
                    source_name: None,
                    data: RawConstraintData::Unique(RawUniqueConstraintData {
                        columns: columns(&[*column]),
                    }),
                })
                .collect(),
            sequences: vec![],
            table_type: TableKind::User,
            table_access: TableAccess::Public,
            default_values: vec![],
            is_event: false,
        };
        let mut sections = vec![
            Section::Typespace(Typespace { types: vec![row] }),
            Section::Tables(vec![table]),
        ];
        sections.extend(more);
        ModuleDef::validate(RawModuleDef::V10(RawModuleDefV10 { sections })).expect("valid")
    }

    fn reducer() -> Section {
        Section::Reducers(vec![RawReducerDefV10 {
            source_name: "add".into(),
            params: ProductType::new::<&str>([]),
            visibility: FunctionVisibility::ClientCallable,
            ok_return_type: AlgebraicType::unit(),
            err_return_type: AlgebraicType::String,
        }])
    }

    #[test]
    fn a_module_without_functions() {
        let advice = of(&module(&[], &[], vec![]));
        assert!(
            advice.len() == 1 && advice[0].contains("no function"),
            "{advice:?}"
        );
        assert_eq!(of(&module(&[], &[], vec![reducer()])), Vec::<String>::new());
    }

    #[test]
    fn floats_that_are_compared() {
        let advice = of(&module(&[2], &[&[2]], vec![reducer()]));
        assert!(
            advice.len() == 1 && advice[0].contains("`place`.`y`"),
            "{advice:?}"
        );
    }

    #[test]
    fn indexes_that_others_make_superfluous() {
        for (unique, indexes, superfluous) in [
            (&[][..], &[&[1][..], &[2]][..], 0),
            (&[], &[&[1], &[1, 2]], 1),
            (&[], &[&[1, 2], &[2, 1]], 0),
            (&[], &[&[2], &[1, 2]], 0),
            (&[0], &[&[0], &[0, 1]], 0),
        ] {
            let advice = of(&module(unique, indexes, vec![reducer()]));
            assert_eq!(advice.len(), superfluous, "{indexes:?}: {advice:?}");
        }
    }
}
