//! The visible part of a module definition, level by level, sorted as in files.

mod flat;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use lightcone_schema::case::{to_pascal, to_snake};
use lightcone_schema::{
    ColumnDef, ModuleDef, ModuleLevel, TableAccess, TableDef, ViewDef, Visibility,
};
use lightcone_types::{AlgebraicType, ColId, ProductType, SpecialProduct, TypeRef, Typespace};

use crate::error::{Error, Result};

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
    /// It is a view with parameters: no query without arguments reads it.
    pub takes_arguments: bool,
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
        module.add(&def.root, Vec::new(), "", include_private)?;
        Ok(module)
    }

    /// Adds a level by its path in the code of the module; `prefix` is before the names by which the server knows it.
    fn add(
        &mut self,
        level: &ModuleLevel,
        path: Vec<String>,
        prefix: &str,
        include_private: bool,
    ) -> Result<()> {
        let qualified = |name: &str| format!("{prefix}{name}");
        let shown = |visibility| include_private || visibility == Visibility::ClientCallable;
        let is_skipped =
            |table: &&TableDef| table.access == TableAccess::Private && !include_private;
        let skipped = level.tables.iter().filter(is_skipped);
        self.skipped_tables
            .extend(skipped.map(|table| qualified(&table.name)));
        let tables = level.tables.iter().filter(|table| !is_skipped(table));
        let tables = tables.map(|table| Table::of_table(level, table, qualified(&table.name)));
        let views = level
            .views
            .iter()
            .filter(|view| view.is_public || include_private);
        let views = views.map(|view| Table::of_view(level, view, qualified(&view.name)));
        let mut all = sorted(tables, |table| &table.name)?;
        all.extend(sorted(views, |view| &view.name)?);

        let function = |source_name: &str, name: &str, declared, return_type| {
            Ok(Function {
                accessor: source_name.to_owned(),
                name: qualified(name),
                params: params(declared, name)?,
                return_type,
            })
        };
        let reducers = level.shown_reducers();
        let reducers = reducers.filter(|r| r.lifecycle.is_none() && shown(r.visibility));
        let reducers =
            reducers.map(|r| function(&r.source_name, &r.name, &r.params, AlgebraicType::unit()));
        let procedures = level.procedures.iter().filter(|p| shown(p.visibility));
        let procedures =
            procedures.map(|p| function(&p.source_name, &p.name, &p.params, p.return_type.clone()));
        self.levels.push(Level {
            types: Types::new(level),
            tables: all,
            reducers: sorted(reducers, |reducer| &reducer.name)?,
            procedures: sorted(procedures, |procedure| &procedure.name)?,
            path: path.clone(),
        });
        for submodule in &level.submodules {
            let path = [&path[..], std::slice::from_ref(&submodule.source_namespace)].concat();
            let prefix = format!("{prefix}{}.", submodule.namespace);
            self.add(submodule, path, &prefix, include_private)?;
        }
        Ok(())
    }

    pub fn tables(&self) -> impl Iterator<Item = (&Level, &Table)> {
        self.each(|level| &level.tables)
    }

    pub fn reducers(&self) -> impl Iterator<Item = (&Level, &Function)> {
        self.each(|level| &level.reducers)
    }

    pub fn procedures(&self) -> impl Iterator<Item = (&Level, &Function)> {
        self.each(|level| &level.procedures)
    }

    /// The things of one kind, each with its level.
    fn each<T: 'static>(&self, of: fn(&Level) -> &Vec<T>) -> impl Iterator<Item = (&Level, &T)> {
        let levels = self.levels.iter();
        levels.flat_map(move |level| of(level).iter().map(move |one| (level, one)))
    }
}

/// All of them by name, or the first error.
fn sorted<T>(
    things: impl Iterator<Item = Result<T>>,
    name: impl Fn(&T) -> &String,
) -> Result<Vec<T>> {
    let mut things = things.collect::<Result<Vec<_>>>()?;
    things.sort_by(|a, b| name(a).cmp(name(b)));
    Ok(things)
}

impl Level {
    /// The name of the row type of a table.
    pub fn row_type(&self, table: &Table) -> Result<&str> {
        let name = self.types.names.get(&table.row_type).map(String::as_str);
        name.ok_or_else(|| Error::unnamed(format!("table `{}`", table.name)))
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
    let named = product.elements.iter().map(|element| {
        let name = element.name();
        let name = name.ok_or_else(|| Error::unnamed_field(format!("`{function}`")))?;
        Ok((name.to_owned(), element.algebraic_type.clone()))
    });
    named.collect()
}

impl Table {
    fn of_table(level: &ModuleLevel, table: &TableDef, name: String) -> Result<Self> {
        let positions = |columns: &[ColId]| columns.iter().map(|c| c.index()).collect();
        let constraints = table.constraints.iter().map(|constraint| {
            Ok(Constraint {
                name: constraint.name.clone(),
                columns: positions(&constraint.columns),
            })
        });
        let indexes = table.indexes.iter().map(|index| {
            Ok(Index {
                accessor: index.accessor_name.as_ref().unwrap_or(&index.name).clone(),
                name: index.name.clone(),
                columns: positions(index.algorithm.columns()),
            })
        });
        let (row_type, key) = (table.row_type, table.primary_key);
        Ok(Self {
            accessor: table.source_name.clone(),
            columns: columns(level, row_type, &table.columns, key, &name)?,
            name,
            row_type,
            indexes: sorted(indexes, |index| &index.name)?,
            constraints: sorted(constraints, |constraint| &constraint.name)?,
            is_event: table.is_event,
            takes_arguments: false,
        })
    }

    fn of_view(level: &ModuleLevel, view: &ViewDef, name: String) -> Result<Self> {
        let (row_type, key) = (view.row_type, view.primary_key);
        Ok(Self {
            accessor: view.source_name.clone(),
            columns: columns(level, row_type, &view.columns, key, &name)?,
            name,
            row_type,
            indexes: Vec::new(),
            constraints: Vec::new(),
            is_event: false,
            takes_arguments: view.has_parameters(),
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
    primary_key: Option<ColId>,
    table: &str,
) -> Result<Vec<Column>> {
    let Some(AlgebraicType::Product(row)) = level.typespace.get(row_type) else {
        return Err(Error::missing_type(format!("table `{table}`")));
    };
    let key = primary_key.map(|key| key.index());
    let columns = columns.iter().zip(&row.elements).enumerate();
    let columns = columns.map(|(position, (column, element))| Column {
        accessor: column.source_name.clone(),
        name: column.name.clone(),
        ty: element.algebraic_type.clone(),
        is_primary_key: key == Some(position),
    });
    Ok(columns.collect())
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
    Special(SpecialProduct),
    ScheduleAt,
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
            let parts = ty.scope.iter().chain([&ty.name]);
            let name: String = parts.map(|part| to_pascal(part)).collect();
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
        let definition = self.get(ty).ok_or_else(|| Error::missing_type(place))?;
        let parts = definition.parts().map(|(name, ty)| {
            let name = name.ok_or_else(|| Error::unnamed_field(place))?;
            Ok((name, ty))
        });
        match definition {
            AlgebraicType::Product(_) => Ok(Definition::Product(parts.collect::<Result<_>>()?)),
            AlgebraicType::Sum(_) => Ok(Definition::Sum(parts.collect::<Result<_>>()?)),
            _ => Err(Error::missing_type(place)),
        }
    }

    /// `place` names the type in errors.
    pub fn shape<'a>(&'a self, ty: &'a AlgebraicType, place: &str) -> Result<Shape<'a>> {
        let unnamed = || Error::unnamed(place);
        Ok(match ty {
            AlgebraicType::Ref(reference) => match self.names.get(reference) {
                Some(name) => Shape::Named(name),
                None => {
                    let target = self.get(*reference);
                    let target = target.ok_or_else(|| Error::missing_type(place))?;
                    // A ref to itself would never end; no validated module has one.
                    if matches!(target, AlgebraicType::Ref(_)) {
                        return Err(unnamed());
                    }
                    self.shape(target, place)?
                }
            },
            AlgebraicType::Product(p) if p.is_empty() => Shape::Unit,
            AlgebraicType::Product(p) => Shape::Special(p.special().ok_or_else(unnamed)?),
            AlgebraicType::Sum(s) if s.variants.is_empty() => Shape::Never,
            AlgebraicType::Sum(s) if s.is_schedule_at() => Shape::ScheduleAt,
            AlgebraicType::Sum(s) => match (s.as_option(), s.as_result()) {
                (Some(some), _) => Shape::Option(some),
                (None, Some((ok, err))) => Shape::Result(ok, err),
                (None, None) => return Err(unnamed()),
            },
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
        let functions = level.reducers.iter().chain(&level.procedures);
        for ty in functions.flat_map(Function::types) {
            self.mentioned(ty, &mut mentioned);
        }
        for other in self.sorted.keys() {
            self.mentioned_by_definition(other, &mut mentioned);
        }
        mentioned.contains(name)
    }
}

impl Function {
    /// The types of its parameters, and of what it returns.
    pub fn types(&self) -> impl Iterator<Item = &AlgebraicType> {
        let params = self.params.iter().map(|(_, ty)| ty);
        params.chain([&self.return_type])
    }
}

/// The stem of the file of a table, reducer or procedure.
pub(crate) fn file_stem(accessor: &str, kind: &str) -> String {
    format!("{}_{kind}", to_snake(accessor))
}
