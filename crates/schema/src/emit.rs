//! The raw definition for the schema endpoint, built from the validated one (02 §15).

use lightcone_types::{AlgebraicType, ColId, ProductType};

use crate::def::*;
use crate::raw::*;
use crate::table::TableKind;
use crate::validate::NameRules;

impl ModuleDef {
    /// The definition in its version 10 form, all names canonical: it validates again to the same ones, but for explicit names of
    /// indexes.
    pub fn to_raw_v10(&self) -> RawModuleDefV10 {
        let mut raw = level_v10(&self.root);
        if self.root.environment.is_some() {
            let declared = self.environment_declarations();
            raw.sections
                .insert(0, RawModuleDefV10Section::Environment(declared));
        }
        raw
    }

    /// The definition in its version 9 form: canonical names; without submodules, event flags,
    /// visibility, HTTP and view keys (02 §15.2).
    pub fn to_raw_v9(&self) -> RawModuleDefV9 {
        level_v9(&self.root)
    }

    /// The declared variables of the environment as a module sends them, in order of their keys.
    pub fn environment_declarations(&self) -> Vec<RawEnvironmentDeclarationV10> {
        let declared = self.environment();
        let declared = declared.map(|(name, variable)| RawEnvironmentDeclarationV10 {
            name: name.clone(),
            ty: variable.ty.clone(),
            optional: variable.optional,
        });
        declared.collect()
    }

    /// The JSON text of [`to_raw_v9`](Self::to_raw_v9) or [`to_raw_v10`](Self::to_raw_v10), without envelope.
    pub fn schema_json(&self, version: RawVersion) -> String {
        match version {
            RawVersion::V9 => json::to_string(&self.to_raw_v9()),
            RawVersion::V10 => json::to_string(&self.to_raw_v10()),
        }
    }
}

fn level_v10(level: &ModuleLevel) -> RawModuleDefV10 {
    use RawModuleDefV10Section as S;
    let explicit = explicit_names(level);
    let names = ShownNames {
        level,
        // Names are converted already.
        readers_rules: NameRules::new(CaseConversionPolicy::None, explicit.clone(), false),
        params: NameRules::new(level.policy, ExplicitNames::default(), false),
    };
    let mut sections = vec![
        S::CaseConversionPolicy(CaseConversionPolicy::None),
        S::Typespace((*level.typespace).clone()),
    ];
    add(&mut sections, level.types.iter().map(type_v10), S::Types);
    add(&mut sections, level.tables.iter().map(table_v10), S::Tables);
    add(
        &mut sections,
        level.shown_reducers().map(|of| RawReducerDefV10 {
            params: names.params(&of.params),
            ..reducer_v10(of)
        }),
        S::Reducers,
    );
    add(
        &mut sections,
        level.procedures.iter().map(|of| RawProcedureDefV10 {
            params: names.params(&of.params),
            ..procedure_v10(of)
        }),
        S::Procedures,
    );
    let handlers = level.http_handlers.iter();
    let handlers = handlers.map(|handler| RawHttpHandlerDefV10 {
        source_name: handler.source_name.clone(),
    });
    add(&mut sections, handlers, S::HttpHandlers);
    let routes = level.http_routes.iter();
    add(
        &mut sections,
        routes.map(|route| names.http_route(route)),
        S::HttpRoutes,
    );
    let views = level.views.iter().map(|of| RawViewDefV10 {
        params: names.params(&of.params),
        ..view_v10(of)
    });
    add(&mut sections, views, S::Views);
    let keys = level.views.iter().filter_map(view_primary_key_v10);
    add(&mut sections, keys, S::ViewPrimaryKeys);
    let schedules = level.tables.iter();
    let schedules = schedules.filter_map(|table| names.schedule(table));
    add(&mut sections, schedules, S::Schedules);
    let outboxes = level
        .tables
        .iter()
        .filter_map(|table| outbox_v10(level, table));
    add(&mut sections, outboxes, S::Outboxes);
    let lifecycles = level.reducers.iter();
    let lifecycles = lifecycles.filter_map(|reducer| names.lifecycle(reducer));
    add(&mut sections, lifecycles, S::LifeCycleReducers);
    add(
        &mut sections,
        row_level_security(level),
        S::RowLevelSecurity,
    );
    let submodules = level.submodules.iter().map(|level| RawSubmoduleV10 {
        namespace: level.source_namespace.clone(),
        module: level_v10(level),
    });
    add(&mut sections, submodules, S::Submodules);
    sections.push(S::ExplicitNames(explicit));
    RawModuleDefV10 { sections }
}

/// Adds a section unless it is empty.
fn add<T>(
    sections: &mut Vec<RawModuleDefV10Section>,
    items: impl IntoIterator<Item = T>,
    section: impl FnOnce(Vec<T>) -> RawModuleDefV10Section,
) {
    let items: Vec<T> = items.into_iter().collect();
    if !items.is_empty() {
        sections.push(section(items));
    }
}

fn type_v10(ty: &TypeDef) -> RawTypeDefV10 {
    RawTypeDefV10 {
        source_name: RawScopedTypeNameV10 {
            scope: ty.scope.clone(),
            source_name: ty.name.clone(),
        },
        ty: ty.ty,
        custom_ordering: ty.custom_ordering,
    }
}

fn reducer_v10(reducer: &ReducerDef) -> RawReducerDefV10 {
    RawReducerDefV10 {
        source_name: reducer.source_name.clone(),
        params: reducer.params.clone(),
        visibility: reducer.visibility,
        ok_return_type: AlgebraicType::unit(),
        err_return_type: AlgebraicType::String,
    }
}

fn procedure_v10(procedure: &ProcedureDef) -> RawProcedureDefV10 {
    RawProcedureDefV10 {
        source_name: procedure.source_name.clone(),
        params: procedure.params.clone(),
        return_type: procedure.return_type.clone(),
        visibility: procedure.visibility,
    }
}

fn view_v10(view: &ViewDef) -> RawViewDefV10 {
    RawViewDefV10 {
        source_name: view.source_name.clone(),
        index: view.index,
        is_public: view.is_public,
        is_anonymous: view.is_anonymous,
        params: view.params.clone(),
        return_type: view.return_type.clone(),
    }
}

fn view_primary_key_v10(view: &ViewDef) -> Option<RawViewPrimaryKeyDefV10> {
    let key = view.primary_key.filter(|_| !view.is_query)?;
    Some(RawViewPrimaryKeyDefV10 {
        view_source_name: view.source_name.clone(),
        columns: vec![view.columns[key.index()].name.clone()],
    })
}

/// By source names.
fn outbox_v10(level: &ModuleLevel, table: &TableDef) -> Option<RawOutboxDefV10> {
    let outbox = table.outbox.as_ref()?;
    let source = |name: &String| {
        let reducer = level.reducers.iter().find(|reducer| reducer.name == *name);
        reducer.map(|reducer| reducer.source_name.clone())
    };
    Some(RawOutboxDefV10 {
        table_name: table.source_name.clone(),
        remote_reducer: outbox.remote_reducer.clone(),
        target_column: outbox.target_column,
        arg_columns: outbox.arg_columns.clone(),
        on_result_reducer: outbox.on_result.as_ref().and_then(source),
        signature_hash: outbox.signature_hash,
    })
}

/// The names by which sections refer to objects of other sections.
struct ShownNames<'a> {
    level: &'a ModuleLevel,
    /// The rules by which readers derive canonical names.
    readers_rules: NameRules,
    /// Those of parameters, which have no explicit names.
    params: NameRules,
}

impl ShownNames<'_> {
    fn function(&self, canonical: &str) -> String {
        let reducers = self.level.shown_reducers();
        let procedures = self.level.procedures.iter();
        let sources = reducers
            .map(|reducer| (&reducer.name, &reducer.source_name))
            .chain(procedures.map(|procedure| (&procedure.name, &procedure.source_name)));
        surviving(canonical, |name| self.readers_rules.function(name), sources)
    }

    fn table(&self, table: &TableDef) -> String {
        let source = std::iter::once((&table.name, &table.source_name));
        surviving(&table.name, |name| self.readers_rules.table(name), source)
    }

    fn params(&self, params: &ProductType) -> ProductType {
        let mut params = params.clone();
        for param in &mut params.elements {
            param.name = param.name().map(|name| self.params.parameter(name).into());
        }
        params
    }

    fn http_route(&self, route: &HttpRouteDef) -> RawHttpRouteDefV10 {
        RawHttpRouteDefV10 {
            handler_function: self.level.http_handlers[route.handler].source_name.clone(),
            method: route.method.clone(),
            path: route.path.clone(),
        }
    }

    fn schedule(&self, table: &TableDef) -> Option<RawScheduleDefV10> {
        let schedule = table.schedule.as_ref()?;
        Some(RawScheduleDefV10 {
            source_name: Some(schedule.name.clone()),
            table_name: self.table(table),
            schedule_at_col: schedule.at_column,
            function_name: self.function(&schedule.function_name),
        })
    }

    fn lifecycle(&self, reducer: &ReducerDef) -> Option<RawLifeCycleReducerDefV10> {
        Some(RawLifeCycleReducerDefV10 {
            lifecycle_spec: reducer.lifecycle?,
            function_name: self.function(&reducer.name),
        })
    }
}

/// The name to show for an object: its canonical name if that reads back as the same object, else
/// its source name.
fn surviving<'a>(
    canonical: &str,
    read_back: impl Fn(&str) -> String,
    mut sources: impl Iterator<Item = (&'a String, &'a String)>,
) -> String {
    if read_back(canonical) == canonical {
        return canonical.to_owned();
    }
    let source = sources
        .find(|(name, _)| *name == canonical)
        .map(|(_, source)| source.as_str());
    source.unwrap_or(canonical).to_owned()
}

fn explicit_names(level: &ModuleLevel) -> ExplicitNames {
    let mapping = |source: &str, canonical: &str| NameMapping {
        source_name: source.to_owned(),
        canonical_name: canonical.to_owned(),
    };
    let tables = level.tables.iter();
    let tables = tables.map(|table| mapping(&table.source_name, &table.name));
    let reducers = level.shown_reducers();
    let reducers = reducers.map(|reducer| mapping(&reducer.source_name, &reducer.name));
    let procedures = level.procedures.iter();
    let procedures = procedures.map(|of| mapping(&of.source_name, &of.name));
    let views = level.views.iter();
    let views = views.map(|view| mapping(&view.source_name, &view.name));
    let handlers = level.http_handlers.iter();
    let handlers = handlers.map(|handler| mapping(&handler.source_name, &handler.name));
    let functions = reducers.chain(procedures).chain(handlers).chain(views);
    let namespaces = level.submodules.iter();
    let namespaces = namespaces.map(|below| mapping(&below.source_namespace, &below.namespace));
    let tables = tables.map(ExplicitNameEntry::Table);
    ExplicitNames {
        entries: tables
            .chain(functions.map(ExplicitNameEntry::Function))
            .chain(namespaces.map(ExplicitNameEntry::Namespace))
            .collect(),
    }
}

fn table_v10(table: &TableDef) -> RawTableDefV10 {
    let indexes = table.indexes.iter().map(|index| RawIndexDefV10 {
        source_name: Some(index.source_name.clone()),
        accessor_name: index.accessor_name.clone(),
        algorithm: index.algorithm.clone(),
    });
    let constraints = table
        .constraints
        .iter()
        .map(|constraint| RawConstraintDefV10 {
            source_name: Some(constraint.name.clone()),
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: constraint.columns.clone(),
            }),
        });
    let sequences = table.sequences.iter().map(|sequence| RawSequenceDefV10 {
        source_name: Some(sequence.name.clone()),
        column: sequence.column,
        start: None,
        min_value: None,
        max_value: None,
        increment: 1,
    });
    let default_values =
        defaults(table).map(|(col_id, value)| RawColumnDefaultValueV10 { col_id, value });
    RawTableDefV10 {
        source_name: table.source_name.clone(),
        product_type_ref: table.row_type,
        primary_key: table.primary_key.into_iter().collect(),
        indexes: indexes.collect(),
        constraints: constraints.collect(),
        sequences: sequences.collect(),
        table_type: TableKind::User,
        table_access: table.access,
        default_values: default_values.collect(),
        is_event: table.is_event,
    }
}

fn defaults(table: &TableDef) -> impl Iterator<Item = (ColId, Vec<u8>)> + '_ {
    let columns = (0u16..).map(ColId).zip(&table.columns);
    columns.filter_map(|(id, column)| Some((id, column.default.clone()?)))
}

fn row_level_security(level: &ModuleLevel) -> Vec<RawRowLevelSecurityDef> {
    let rules = level.row_level_security.iter().cloned();
    rules.map(|sql| RawRowLevelSecurityDef { sql }).collect()
}

fn level_v9(level: &ModuleLevel) -> RawModuleDefV9 {
    let mut tables: Vec<&TableDef> = level.tables.iter().collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    let mut types: Vec<&TypeDef> = level.types.iter().collect();
    types.sort_by(|a, b| (&a.scope, &a.name).cmp(&(&b.scope, &b.name)));
    let reducers = level.shown_reducers().map(|reducer| RawReducerDefV9 {
        name: reducer.name.clone(),
        params: reducer.params.clone(),
        lifecycle: reducer.lifecycle,
    });
    let types = types.into_iter().map(|ty| RawTypeDefV9 {
        name: RawScopedTypeNameV9 {
            scope: ty.scope.clone(),
            name: ty.name.clone(),
        },
        ty: ty.ty,
        custom_ordering: ty.custom_ordering,
    });
    let default_values = tables.iter().flat_map(|table| {
        defaults(table).map(|(col_id, value)| {
            RawMiscModuleExportV9::ColumnDefaultValue(RawColumnDefaultValueV9 {
                table: table.name.clone(),
                col_id,
                value,
            })
        })
    });
    let procedures = level.procedures.iter().map(|procedure| {
        RawMiscModuleExportV9::Procedure(RawProcedureDefV9 {
            name: procedure.name.clone(),
            params: procedure.params.clone(),
            return_type: procedure.return_type.clone(),
        })
    });
    let views = level.views.iter().map(|view| {
        let name = view.name.clone();
        RawMiscModuleExportV9::View(RawViewDefV9 {
            name,
            ..view_v10(view).into()
        })
    });
    RawModuleDefV9 {
        typespace: (*level.typespace).clone(),
        tables: tables.iter().map(|table| table_v9(table)).collect(),
        reducers: reducers.collect(),
        types: types.collect(),
        misc_exports: default_values.chain(procedures).chain(views).collect(),
        row_level_security: row_level_security(level),
    }
}

fn table_v9(table: &TableDef) -> RawTableDefV9 {
    let raw = table_v10(table);
    let indexes = raw.indexes.into_iter().zip(&table.indexes);
    let indexes = indexes.map(|(raw, index)| RawIndexDefV9 {
        name: Some(index.name.clone()),
        ..raw.into()
    });
    let mut indexes: Vec<_> = indexes.collect();
    indexes.sort_by(|a, b| a.name.cmp(&b.name));
    let constraints = raw.constraints.into_iter();
    let mut constraints: Vec<RawConstraintDefV9> = constraints.map(Into::into).collect();
    constraints.sort_by(|a, b| a.name.cmp(&b.name));
    let sequences = raw.sequences.into_iter();
    let mut sequences: Vec<RawSequenceDefV9> = sequences.map(Into::into).collect();
    sequences.sort_by(|a, b| a.name.cmp(&b.name));
    let schedule = table.schedule.as_ref().map(|schedule| RawScheduleDefV9 {
        name: Some(schedule.name.clone()),
        reducer_name: schedule.function_name.clone(),
        scheduled_at_column: schedule.at_column,
    });
    RawTableDefV9 {
        name: table.name.clone(),
        product_type_ref: table.row_type,
        primary_key: table.primary_key.into_iter().collect(),
        indexes,
        constraints,
        sequences,
        schedule,
        table_type: TableKind::User,
        table_access: table.access,
    }
}
