//! One module level with a field per section, filled from either version.

use std::collections::HashMap;

use lightcone_types::AlgebraicType;

use super::context::Context;
use crate::error::{clip, ValidationError};
use crate::raw::*;

// Version 9 structures are brought into their version 10 shape; where the meaning differs, the validators look at
// [`Context::version`].
impl Sections {
    pub(super) fn from_v10(cx: &mut Context, raw: RawModuleDefV10) -> Self {
        let mut sections = Sections::default();
        let mut seen = [false; RawModuleDefV10Section::COUNT];
        for section in raw.sections {
            let tag = usize::from(section.tag());
            if std::mem::replace(&mut seen[tag], true) {
                cx.push(ValidationError::RepeatedSection {
                    section: section.name(),
                });
                continue;
            }
            sections.set(section);
        }
        sections
    }

    pub(super) fn from_v9(cx: &mut Context, raw: RawModuleDefV9) -> Self {
        let mut sections = Sections {
            typespace: raw.typespace,
            row_level_security: raw.row_level_security,
            policy: CaseConversionPolicy::None,
            ..Sections::default()
        };
        for ty in raw.types {
            sections.types.push(RawTypeDefV10 {
                source_name: RawScopedTypeNameV10 {
                    scope: ty.name.scope,
                    source_name: ty.name.name,
                },
                ty: ty.ty,
                custom_ordering: ty.custom_ordering,
            });
        }
        let mut tables_by_name = HashMap::new();
        for table in raw.tables {
            tables_by_name
                .entry(table.name.clone())
                .or_insert(sections.tables.len());
            sections.add_table_v9(table);
        }
        for reducer in raw.reducers {
            sections.add_reducer_v9(reducer);
        }
        for export in raw.misc_exports {
            sections.add_export_v9(cx, &tables_by_name, export);
        }
        sections
    }

    fn add_reducer_v9(&mut self, reducer: RawReducerDefV9) {
        if let Some(lifecycle_spec) = reducer.lifecycle {
            self.lifecycles.push(RawLifeCycleReducerDefV10 {
                lifecycle_spec,
                function_name: reducer.name.clone(),
            });
        }
        self.reducers.push(RawReducerDefV10 {
            source_name: reducer.name,
            params: reducer.params,
            visibility: FunctionVisibility::ClientCallable,
            ok_return_type: AlgebraicType::unit(),
            err_return_type: AlgebraicType::String,
        });
    }

    fn add_export_v9(
        &mut self,
        cx: &mut Context,
        tables_by_name: &HashMap<String, usize>,
        export: RawMiscModuleExportV9,
    ) {
        match export {
            RawMiscModuleExportV9::ColumnDefaultValue(default) => {
                let value = RawColumnDefaultValueV10 {
                    col_id: default.col_id,
                    value: default.value,
                };
                match tables_by_name.get(&default.table) {
                    Some(&table) => self.tables[table].default_values.push(value),
                    None => cx.push(ValidationError::TableNotFound {
                        name: clip(&default.table),
                    }),
                }
            }
            RawMiscModuleExportV9::Procedure(procedure) => {
                self.procedures.push(RawProcedureDefV10 {
                    source_name: procedure.name,
                    params: procedure.params,
                    return_type: procedure.return_type,
                    visibility: FunctionVisibility::ClientCallable,
                })
            }
            RawMiscModuleExportV9::View(view) => self.views.push(view.into()),
        }
    }

    fn add_table_v9(&mut self, table: RawTableDefV9) {
        if let Some(schedule) = table.schedule {
            self.schedules.push(RawScheduleDefV10 {
                source_name: schedule.name,
                table_name: table.name.clone(),
                schedule_at_col: schedule.scheduled_at_column,
                function_name: schedule.reducer_name,
            });
        }
        self.tables.push(RawTableDefV10 {
            source_name: table.name,
            product_type_ref: table.product_type_ref,
            primary_key: table.primary_key,
            indexes: table.indexes.into_iter().map(Into::into).collect(),
            constraints: table.constraints.into_iter().map(Into::into).collect(),
            sequences: table.sequences.into_iter().map(Into::into).collect(),
            table_type: table.table_type,
            table_access: table.table_access,
            default_values: Vec::new(),
            is_event: false,
        });
    }
}
