//! The relations that names can refer to (08 §3).

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::AlgebraicType;

use crate::ast::ColumnName;
use crate::condition::ColumnAt;
use crate::error::{Result, SqlError, RELATIONS_MAX};

/// All relations of a query, and which of them names refer to at present: those of the subquery that is being checked, and
/// what those do not have is looked for around it.
pub(crate) struct Scope {
    /// In the order in which they are joined, those of subqueries behind those around them.
    relations: Vec<Arc<TableSchema>>,
    /// By relation: it may have no row.
    optional: Vec<bool>,
    /// From the query to the subquery that is being checked.
    levels: Vec<Level>,
}

/// The names of a query or subquery.
struct Level {
    by_alias: HashMap<String, usize>,
    /// Its first relation, for columns that do not say which relation they are of.
    first: usize,
    /// Columns must say which relation they are of.
    qualified_only: bool,
}

/// A column that a name refers to.
#[derive(Clone, Copy)]
pub(crate) struct ColumnRef<'a> {
    pub at: ColumnAt,
    pub ty: &'a AlgebraicType,
}

impl Scope {
    pub fn new(qualified_only: bool) -> Scope {
        let mut scope = Scope {
            relations: Vec::new(),
            optional: Vec::new(),
            levels: Vec::new(),
        };
        scope.open(qualified_only);
        scope
    }

    /// Goes into a subquery.
    pub fn open(&mut self, qualified_only: bool) {
        self.levels.push(Level {
            by_alias: HashMap::new(),
            first: self.relations.len(),
            qualified_only,
        });
    }

    /// Leaves a subquery: its relations stay, its names do not.
    pub fn close(&mut self) {
        self.levels.pop();
    }

    fn level(&self) -> &Level {
        self.levels.last().expect("one is never left")
    }

    pub fn add(&mut self, alias: &str, table: Arc<TableSchema>) -> Result<()> {
        let relation = self.relations.len();
        if relation >= RELATIONS_MAX {
            return Err(SqlError::TooManyRelations);
        }
        let level = self.levels.last_mut().expect("one is never left");
        if level.by_alias.insert(alias.to_owned(), relation).is_some() {
            return Err(SqlError::DuplicateName(alias.to_owned()));
        }
        self.relations.push(table);
        self.optional.push(false);
        Ok(())
    }

    /// A relation of the query or subquery that is being checked.
    pub fn relation(&self, alias: &str) -> Result<usize> {
        let found = self.level().by_alias.get(alias).copied();
        found.ok_or_else(|| SqlError::NotInScope(alias.to_owned()))
    }

    /// The first relation of the query or subquery that is being checked.
    pub fn first(&self) -> u16 {
        self.level().first as u16
    }

    pub fn is_in_subquery(&self) -> bool {
        self.levels.len() > 1
    }

    /// How many relations that has, subqueries in it not counted: these are checked later.
    pub fn joined_count(&self) -> usize {
        self.level().by_alias.len()
    }

    /// The last relation may have no row.
    pub fn last_is_optional(&mut self) {
        if let Some(last) = self.optional.last_mut() {
            *last = true;
        }
    }

    pub fn is_optional(&self, relation: u16) -> bool {
        self.optional[usize::from(relation)]
    }

    pub fn has_optional(&self) -> bool {
        self.optional.contains(&true)
    }

    /// The type of a column in a result: an option, if the relation may have no row.
    pub fn result_type(&self, at: ColumnAt) -> AlgebraicType {
        let ty = self.type_at(at).clone();
        match self.is_optional(at.relation) && ty.as_option().is_none() {
            true => AlgebraicType::option(ty),
            false => ty,
        }
    }

    pub fn table(&self, relation: u16) -> &Arc<TableSchema> {
        &self.relations[usize::from(relation)]
    }

    /// The tables, in the order of the relations.
    pub fn into_tables(self) -> Vec<Arc<TableSchema>> {
        self.relations
    }

    pub fn type_at(&self, at: ColumnAt) -> &AlgebraicType {
        let table = &self.relations[usize::from(at.relation)];
        &table
            .column(at.column)
            .expect("it was found by its name")
            .ty
    }

    /// How many relations there are, those of subqueries included.
    pub fn len(&self) -> usize {
        self.relations.len()
    }

    /// The column of this name: of the innermost subquery that has one.
    pub fn column(&self, name: &ColumnName) -> Result<ColumnRef<'_>> {
        let mut levels = self.levels.iter().rev();
        let innermost = levels.next().map(|level| self.column_in(level, name));
        let innermost = innermost.expect("one is never left");
        if !matches!(innermost, Err(SqlError::NotInScope(_))) {
            return innermost;
        }
        let mut around = levels.map(|level| self.column_in(level, name));
        match around.find(Result::is_ok) {
            Some(found) => found,
            None => innermost,
        }
    }

    fn column_in(&self, level: &Level, name: &ColumnName) -> Result<ColumnRef<'_>> {
        let relation = match &name.relation {
            Some(alias) => {
                let found = level.by_alias.get(alias).copied();
                found.ok_or_else(|| SqlError::NotInScope(alias.to_owned()))?
            }
            None if level.qualified_only => return Err(SqlError::UnqualifiedName),
            None => level.first,
        };
        let table = &self.relations[relation];
        let column = table.column_by_accessor_or_name(&name.name);
        match column.and_then(|id| table.column(id).map(|schema| (id, schema))) {
            Some((column, schema)) => Ok(ColumnRef {
                at: ColumnAt {
                    relation: relation as u16,
                    column,
                },
                ty: &schema.ty,
            }),
            None => Err(SqlError::NotInScope(name.name.clone())),
        }
    }
}
