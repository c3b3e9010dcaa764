//! The visible part of a module definition, level by level, sorted as in files.

mod flat;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use lightcone_schema::case::{to_pascal, to_snake};
use lightcone_schema::{
    ColumnDef, ModuleDef, ModuleLevel, TableAccess, TableDef, ViewDef, Visibility,
};
use lightcone_types::{
    AlgebraicType, ProductType, ProductTypeElement, SpecialProduct, TypeRef, Typespace,
};

use crate::error::{Error, Result};

/// A module for clients.
#[derive(Debug)]
pub(crate) struct Module {
    /// The root first, then the submodules depth first.
    pub levels: Vec<Level>,
    pub skipped_tables: Vec<String>,
}

/// The root module or a submodule.
#[derive(Debug)]
pub(crate) struct Level {
    /// The namespaces from the root down; empty for the root.
    pub path: Vec<String>,
    pub types: Types,
    /// Sorted by name; views after tables.
    pub tables: Vec<Table>,
    pub reducers: Vec<Function>,
    pub procedures: Vec<Function>,
}

/// A table or view.
#[derive(Debug)]
pub(crate) struct Table {
    /// In the module's source.
    pub accessor: String,
    /// In the database, with namespaces.
    pub name: String,
    pub row_type: TypeRef,
    pub columns: Vec<Column>,
    pub indexes: Vec<Index>,
    pub constraints: Vec<Constraint>,
    pub is_event: bool,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub accessor: String,
    pub name: String,
    /// With refs to named types.
    pub ty: AlgebraicType,
    pub is_primary_key: bool,
}

#[derive(Debug)]
pub(crate) struct Index {
    pub accessor: String,
    pub name: String,
    /// Indexes of columns.
    pub columns: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct Constraint {
    pub name: String,
    pub columns: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub accessor: String,
    /// For calls.
    pub name: String,
    pub params: Vec<(String, AlgebraicType)>,
    /// Unit for reducers.
    pub return_type: AlgebraicType,
}

impl Module {
    pub fn new(def: &ModuleDef, include_private: bool) -> Result<Self> {
        let mut module = Self {
            levels: Vec::new(),
            skipped_tables: Vec::new(),
        };
        module.add(&def.root, Vec::new(), include_private)?;
        Ok(module)
    }

    fn add(&mut self, level: &ModuleLevel, path: Vec<String>, include_private: bool) -> Result<()> {
        let qualified = |name: &str| {
            let mut parts = path.clone();
            parts.push(name.to_owned());
            parts.join(".")
        };
        let mut tables = Vec::new();
        for table in &level.tables {
            if table.access == TableAccess::Private && !include_private {
                self.skipped_tables.push(qualified(&table.name));
                continue;
            }
            tables.push(Table::of_table(level, table, qualified(&table.name))?);
        }
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        let mut views = Vec::new();
        for view in &level.views {
            if view.is_public || include_private {
                views.push(Table::of_view(level, view, qualified(&view.name))?);
            }
        }
        views.sort_by(|a, b| a.name.cmp(&b.name));
        tables.append(&mut views);

        let shown = |visibility| include_private || visibility == Visibility::ClientCallable;
        let mut reducers = Vec::new();
        for reducer in level.shown_reducers() {
            if reducer.lifecycle.is_none() && shown(reducer.visibility) {
                reducers.push(Function {
                    accessor: reducer.source_name.clone(),
                    name: qualified(&reducer.name),
                    params: params(&reducer.params, &reducer.name)?,
                    return_type: AlgebraicType::unit(),
                });
            }
        }
        let mut procedures = Vec::new();
        for procedure in &level.procedures {
            if shown(procedure.visibility) {
                procedures.push(Function {
                    accessor: procedure.source_name.clone(),
                    name: qualified(&procedure.name),
                    params: params(&procedure.params, &procedure.name)?,
                    return_type: procedure.return_type.clone(),
                });
            }
        }
        reducers.sort_by(|a, b| a.name.cmp(&b.name));
        procedures.sort_by(|a, b| a.name.cmp(&b.name));
        self.levels.push(Level {
            path: path.clone(),
            types: Types::new(level),
            tables,
            reducers,
            procedures,
        });
        for submodule in &level.submodules {
            let mut path = path.clone();
            path.push(submodule.namespace.clone());
            self.add(submodule, path, include_private)?;
        }
        Ok(())
    }

    pub fn tables(&self) -> impl Iterator<Item = (&Level, &Table)> {
        self.levels
            .iter()
            .flat_map(|l| l.tables.iter().map(move |t| (l, t)))
    }

    pub fn reducers(&self) -> impl Iterator<Item = (&Level, &Function)> {
        self.levels
            .iter()
            .flat_map(|l| l.reducers.iter().map(move |f| (l, f)))
    }

    pub fn procedures(&self) -> impl Iterator<Item = (&Level, &Function)> {
        self.levels
            .iter()
            .flat_map(|l| l.procedures.iter().map(move |f| (l, f)))
    }
}

impl Level {
    /// The name of the row type of a table.
    pub fn row_type(&self, table: &Table) -> Result<&str> {
        let name = self.types.names.get(&table.row_type);
        name.map(String::as_str).ok_or_else(|| Error::Unnamed {
            place: format!("table `{}`", table.name),
        })
    }

    /// `lib/deep/` for a submodule, nothing for the root.
    pub fn directory(&self) -> String {
        self.path.iter().map(|ns| format!("{ns}/")).collect()
    }

    /// The prefix of a submodule's names when all levels are one.
    pub fn pascal_prefix(&self) -> String {
        self.path.iter().map(|ns| to_pascal(ns)).collect()
    }
}

fn params(product: &ProductType, function: &str) -> Result<Vec<(String, AlgebraicType)>> {
    let named = product.elements.iter().map(|element: &ProductTypeElement| {
        let name = element.name().ok_or_else(|| Error::UnnamedField {
            place: format!("`{function}`"),
        })?;
        Ok((name.to_owned(), element.algebraic_type.clone()))
    });
    named.collect()
}

impl Table {
    fn of_table(level: &ModuleLevel, table: &TableDef, name: String) -> Result<Self> {
        let positions =
            |columns: &[lightcone_types::ColId]| columns.iter().map(|c| c.index()).collect();
        let mut constraints: Vec<Constraint> = table
            .constraints
            .iter()
            .map(|c| Constraint {
                name: c.name.clone(),
                columns: positions(&c.columns),
            })
            .collect();
        constraints.sort_by(|a, b| a.name.cmp(&b.name));
        let mut indexes: Vec<Index> = table
            .indexes
            .iter()
            .map(|index| Index {
                accessor: index
                    .accessor_name
                    .clone()
                    .unwrap_or_else(|| index.name.clone()),
                name: index.name.clone(),
                columns: positions(index.algorithm.columns()),
            })
            .collect();
        indexes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            accessor: table.source_name.clone(),
            columns: columns(
                level,
                table.row_type,
                &table.columns,
                table.primary_key.map(|c| c.index()),
                &name,
            )?,
            name,
            row_type: table.row_type,
            indexes,
            constraints,
            is_event: table.is_event,
        })
    }

    fn of_view(level: &ModuleLevel, view: &ViewDef, name: String) -> Result<Self> {
        Ok(Self {
            accessor: view.source_name.clone(),
            columns: columns(
                level,
                view.row_type,
                &view.columns,
                view.primary_key.map(|c| c.index()),
                &name,
            )?,
            name,
            row_type: view.row_type,
            indexes: Vec::new(),
            constraints: Vec::new(),
            is_event: false,
        })
    }

    pub fn primary_key(&self) -> Option<&Column> {
        self.columns.iter().find(|column| column.is_primary_key)
    }
}

/// The columns, with their types as in the row type: a column's own type has its refs resolved.
fn columns(
    level: &ModuleLevel,
    row_type: TypeRef,
    columns: &[ColumnDef],
    primary_key: Option<usize>,
    table: &str,
) -> Result<Vec<Column>> {
    let Some(AlgebraicType::Product(row)) = level.typespace.get(row_type) else {
        return Err(Error::MissingType {
            place: format!("table `{table}`"),
        });
    };
    let columns = columns.iter().zip(&row.elements).enumerate();
    Ok(columns
        .map(|(position, (column, element))| Column {
            accessor: column.source_name.clone(),
            name: column.name.clone(),
            ty: element.algebraic_type.clone(),
            is_primary_key: primary_key == Some(position),
        })
        .collect())
}

#[derive(Debug)]
pub(crate) struct Types {
    typespace: Arc<Typespace>,
    names: HashMap<TypeRef, String>,
    /// By Pascal name.
    pub sorted: BTreeMap<String, TypeRef>,
}

/// The parts of a named type.
pub(crate) enum Definition<'a> {
    Product(Vec<(&'a str, &'a AlgebraicType)>),
    Sum(Vec<(&'a str, &'a AlgebraicType)>),
}

/// A type with its special shapes told apart, once for all languages.
#[derive(Debug)]
pub(crate) enum Shape<'a> {
    Unit,
    Never,
    Identity,
    ConnectionId,
    Timestamp,
    TimeDuration,
    ScheduleAt,
    Uuid,
    Option(&'a AlgebraicType),
    Result(&'a AlgebraicType, &'a AlgebraicType),
    Bytes,
    Array(&'a AlgebraicType),
    Named(&'a str),
    /// Bool, string or number.
    Primitive(&'a AlgebraicType),
}

impl Types {
    fn new(level: &ModuleLevel) -> Self {
        let mut names = HashMap::new();
        let mut sorted = BTreeMap::new();
        for ty in &level.types {
            let name: String = ty
                .scope
                .iter()
                .chain([&ty.name])
                .map(|part| to_pascal(part))
                .collect();
            names.entry(ty.ty).or_insert_with(|| name.clone());
            sorted.entry(name).or_insert(ty.ty);
        }
        Self {
            typespace: level.typespace.clone(),
            names,
            sorted,
        }
    }

    pub fn get(&self, ty: TypeRef) -> Option<&AlgebraicType> {
        self.typespace.get(ty)
    }

    pub fn named(&self, name: &str) -> Option<&AlgebraicType> {
        self.get(*self.sorted.get(name)?)
    }

    /// The fields or variants of a named type. `place` names the type in errors.
    pub fn definition(&self, ty: TypeRef, place: &str) -> Result<Definition<'_>> {
        let definition = self.get(ty);
        let parts = definition
            .into_iter()
            .flat_map(AlgebraicType::parts)
            .map(|(name, ty)| {
                let name = name.ok_or_else(|| Error::UnnamedField {
                    place: place.to_owned(),
                })?;
                Ok((name, ty))
            });
        match definition {
            Some(AlgebraicType::Product(_)) => {
                Ok(Definition::Product(parts.collect::<Result<_>>()?))
            }
            Some(AlgebraicType::Sum(_)) => Ok(Definition::Sum(parts.collect::<Result<_>>()?)),
            _ => Err(Error::MissingType {
                place: place.to_owned(),
            }),
        }
    }

    /// `place` names the type in errors.
    pub fn shape<'a>(&'a self, ty: &'a AlgebraicType, place: &str) -> Result<Shape<'a>> {
        let unnamed = || Error::Unnamed {
            place: place.to_owned(),
        };
        Ok(match ty {
            AlgebraicType::Ref(reference) => match self.names.get(reference) {
                Some(name) => Shape::Named(name),
                None => {
                    let target =
                        self.typespace
                            .get(*reference)
                            .ok_or_else(|| Error::MissingType {
                                place: place.to_owned(),
                            })?;
                    // A ref to itself would never end; no validated module has one.
                    if matches!(target, AlgebraicType::Ref(_)) {
                        return Err(unnamed());
                    }
                    self.shape(target, place)?
                }
            },
            AlgebraicType::Product(p) if p.is_empty() => Shape::Unit,
            AlgebraicType::Product(p) => match p.special().ok_or_else(unnamed)? {
                SpecialProduct::Identity => Shape::Identity,
                SpecialProduct::ConnectionId => Shape::ConnectionId,
                SpecialProduct::Timestamp => Shape::Timestamp,
                SpecialProduct::TimeDuration => Shape::TimeDuration,
                SpecialProduct::Uuid => Shape::Uuid,
            },
            AlgebraicType::Sum(s) if s.variants.is_empty() => Shape::Never,
            AlgebraicType::Sum(s) if s.is_schedule_at() => Shape::ScheduleAt,
            AlgebraicType::Sum(s) => {
                if let Some(some) = s.as_option() {
                    Shape::Option(some)
                } else if let Some((ok, err)) = s.as_result() {
                    Shape::Result(ok, err)
                } else {
                    return Err(unnamed());
                }
            }
            AlgebraicType::Array(element) if **element == AlgebraicType::U8 => Shape::Bytes,
            AlgebraicType::Array(element) => Shape::Array(element),
            primitive => Shape::Primitive(primitive),
        })
    }

    /// The named types that a type mentions directly.
    pub fn mentioned<'a>(&'a self, ty: &'a AlgebraicType, out: &mut BTreeSet<&'a str>) {
        match self.shape(ty, "") {
            Ok(Shape::Named(name)) => {
                out.insert(name);
            }
            Ok(Shape::Option(inner) | Shape::Array(inner)) => self.mentioned(inner, out),
            Ok(Shape::Result(ok, err)) => {
                self.mentioned(ok, out);
                self.mentioned(err, out);
            }
            _ => {}
        }
    }

    /// The types in the fields or variants of a named type.
    fn mentioned_by_definition<'a>(&'a self, name: &str, out: &mut BTreeSet<&'a str>) {
        for (_, part) in self.named(name).into_iter().flat_map(AlgebraicType::parts) {
            self.mentioned(part, out);
        }
    }

    /// Whether the definition of `from` leads to `to`.
    pub fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut frontier = BTreeSet::new();
        self.mentioned_by_definition(from, &mut frontier);
        while let Some(next) = frontier.pop_first() {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                self.mentioned_by_definition(next, &mut frontier);
            }
        }
        false
    }

    /// Whether a table, function or type of the level needs `name`.
    pub fn is_needed(&self, name: &str, level: &Level) -> bool {
        let mut mentioned = BTreeSet::new();
        for column in level.tables.iter().flat_map(|t| &t.columns) {
            self.mentioned(&column.ty, &mut mentioned);
        }
        for function in level.reducers.iter().chain(&level.procedures) {
            function
                .params
                .iter()
                .for_each(|(_, ty)| self.mentioned(ty, &mut mentioned));
            self.mentioned(&function.return_type, &mut mentioned);
        }
        for other in self.sorted.keys() {
            self.mentioned_by_definition(other, &mut mentioned);
        }
        mentioned.contains(name)
    }
}

/// The stem of the file of a table, reducer or procedure.
pub(crate) fn file_stem(accessor: &str, kind: &str) -> String {
    format!("{}_{kind}", to_snake(accessor))
}
