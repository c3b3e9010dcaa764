//! One module level with a field per section, filled from either version.

use std::collections::HashMap;

use lightcone_types::{AlgebraicType, Typespace};

use super::context::Context;
use crate::error::{clip, ValidationError};
use crate::raw::*;

/// What a level declares. Version 9 structures are brought into their version 10 shape; where the
/// meaning differs, the validators look at [`Context::version`].
#[derive(Default)]
pub(super) struct Sections {
    pub typespace: Typespace,
    pub types: Vec<RawTypeDefV10>,
    pub tables: Vec<RawTableDefV10>,
    pub reducers: Vec<RawReducerDefV10>,
    pub procedures: Vec<RawProcedureDefV10>,
    pub views: Vec<RawViewDefV10>,
    pub schedules: Vec<RawScheduleDefV10>,
    pub lifecycles: Vec<RawLifeCycleReducerDefV10>,
    pub row_level_security: Vec<RawRowLevelSecurityDef>,
    pub policy: CaseConversionPolicy,
    pub explicit_names: ExplicitNames,
    pub http_handlers: Vec<RawHttpHandlerDefV10>,
    pub http_routes: Vec<RawHttpRouteDefV10>,
    pub view_primary_keys: Vec<RawViewPrimaryKeyDefV10>,
    pub submodules: Vec<RawSubmoduleV10>,
}

impl Sections {
    pub fn from_v10(cx: &mut Context, raw: RawModuleDefV10) -> Self {
        use RawModuleDefV10Section as S;
        let mut sections = Sections::default();
        let mut seen = [false; S::COUNT];
        for section in raw.sections {
            let tag = usize::from(section.tag());
            if std::mem::replace(&mut seen[tag], true) {
                cx.push(ValidationError::RepeatedSection {
                    section: section.name(),
                });
                continue;
            }
            match section {
                S::Typespace(v) => sections.typespace = v,
                S::Types(v) => sections.types = v,
                S::Tables(v) => sections.tables = v,
                S::Reducers(v) => sections.reducers = v,
                S::Procedures(v) => sections.procedures = v,
                S::Views(v) => sections.views = v,
                S::Schedules(v) => sections.schedules = v,
                S::LifeCycleReducers(v) => sections.lifecycles = v,
                S::RowLevelSecurity(v) => sections.row_level_security = v,
                S::CaseConversionPolicy(v) => sections.policy = v,
                S::ExplicitNames(v) => sections.explicit_names = v,
                S::HttpHandlers(v) => sections.http_handlers = v,
                S::HttpRoutes(v) => sections.http_routes = v,
                S::ViewPrimaryKeys(v) => sections.view_primary_keys = v,
                S::Submodules(v) => sections.submodules = v,
            }
        }
        sections
    }

    pub fn from_v9(cx: &mut Context, raw: RawModuleDefV9) -> Self {
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
