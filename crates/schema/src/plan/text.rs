//! A plan for people (02 §14.7).

use std::collections::HashSet;
use std::fmt::{self, Write};

use lightcone_types::bsatn::{decode_value, Reader};
use lightcone_types::{ColId, Typespace};

use super::bounded::{clipped, BoundedText};
use super::step::{MigrationPlan, Step, StepKind};
use super::tables::{column_name, column_names};
use crate::def::*;
use crate::table::TableAccess;

/// The output format of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanStyle {
    #[default]
    AnsiColor,
    NoColor,
}

const TITLE: &str = "Database Migration Plan";
const RULE_CHARS: usize = 60;
/// Longer plans are cut: a definition may have a million parts.
const PLAN_TEXT_BYTES_MAX: usize = 1 << 20;

impl MigrationPlan {
    /// The plan as text. `old` and `new` are the definitions that it was made of.
    pub fn text(&self, old: &ModuleDef, new: &ModuleDef, style: PlanStyle) -> String {
        let mut printer = Printer {
            old,
            new,
            style,
            out: BoundedText::new(PLAN_TEXT_BYTES_MAX),
        };
        // Writing fails where the text reaches its bound.
        let printed = printer.plan(self);
        let mut text = printer.out.into_text();
        if printed.is_err() {
            text.push_str(&format!(
                "\n... and more: the plan is cut after {PLAN_TEXT_BYTES_MAX} bytes\n"
            ));
        }
        text
    }
}

#[derive(Clone, Copy)]
enum Paint {
    Title,
    Heading,
    Name,
    Type,
    Created,
    Removed,
    Changed,
    Warning,
}

impl Paint {
    fn codes(self) -> &'static str {
        match self {
            Paint::Title | Paint::Heading => "\u{1b}[1m\u{1b}[34m",
            Paint::Name => "\u{1b}[1m\u{1b}[36m",
            Paint::Type => "\u{1b}[35m",
            Paint::Created => "\u{1b}[1m\u{1b}[32m",
            Paint::Removed => "\u{1b}[1m\u{1b}[31m",
            Paint::Changed => "\u{1b}[1m\u{1b}[33m",
            Paint::Warning => "\u{1b}[1m\u{1b}[37m\u{1b}[41m",
        }
    }
}

struct Printer<'a> {
    old: &'a ModuleDef,
    new: &'a ModuleDef,
    style: PlanStyle,
    out: BoundedText,
}

/// A text in a colour. Every coloured piece begins with a reset.
struct Painted<T>(PlanStyle, Paint, T);

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Painted(style, paint, text) = self;
        match style {
            PlanStyle::NoColor => text.fmt(f),
            PlanStyle::AnsiColor => write!(f, "\u{1b}[0m{}{text}\u{1b}[0m", paint.codes()),
        }
    }
}

impl Printer<'_> {
    fn paint<T: fmt::Display>(&self, paint: Paint, text: T) -> Painted<T> {
        Painted(self.style, paint, text)
    }

    fn name<T: fmt::Display>(&self, text: T) -> Painted<T> {
        self.paint(Paint::Name, text)
    }

    fn created(&self) -> Painted<&'static str> {
        self.paint(Paint::Created, "Created")
    }

    fn removed(&self) -> Painted<&'static str> {
        self.paint(Paint::Removed, "Removed")
    }

    fn changed(&self) -> Painted<&'static str> {
        self.paint(Paint::Changed, "Changed")
    }

    fn plan(&mut self, plan: &MigrationPlan) -> fmt::Result {
        let rule = "━".repeat(RULE_CHARS);
        let title = self.paint(Paint::Title, TITLE);
        write!(self.out, "{rule}\n{title}\n{rule}\n\n")?;
        let old: HashSet<&String> = self.old.row_level_security.iter().collect();
        let new: HashSet<&String> = self.new.row_level_security.iter().collect();
        for step in &plan.steps {
            match step {
                Step::UpdateView { .. } => {}
                Step::RemoveRowLevelSecurity { sql } if new.contains(sql) => {}
                Step::AddRowLevelSecurity { sql } if old.contains(sql) => {}
                step => self.step(step)?,
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> fmt::Result {
        match step {
            Step::RemoveView { view } => {
                let kind = self.old.view(view).map_or("view", view_kind);
                self.line(self.removed(), &format!("{kind}:"), view)?;
                self.out.write_str("\n")
            }
            Step::SetAsideTable { table, old } => {
                let (word, name) = (self.paint(Paint::Changed, "Set aside"), self.name(table));
                let migration = self.new.migration.as_ref();
                let how = match migration.filter(|migration| migration.is_by_rows()) {
                    Some(migration) if migration.row_function(old).is_none() => {
                        "its rows go with it".to_owned()
                    }
                    Some(_) => "its rows are migrated one by one, while the module runs".to_owned(),
                    None => format!("the migration function reads it as {old}"),
                };
                writeln!(self.out, "▸ {word} table: {name} ({how})")
            }
            Step::RunMigration => {
                let word = self.paint(Paint::Changed, "Runs");
                writeln!(self.out, "▸ {word} the migration function")
            }
            Step::Backfill => {
                let word = self.paint(Paint::Changed, "Waits");
                writeln!(
                    self.out,
                    "▸ {word} until all rows are migrated, before any of the above"
                )
            }
            Step::RemoveOldTable { table } => self.line(self.removed(), "old table:", table),
            Step::RemoveTable { table } => {
                self.line(self.removed(), "table:", table)?;
                self.out.write_str("\n")
            }
            Step::RemoveRowLevelSecurity { sql } => self.policy(self.removed(), sql),
            Step::AddRowLevelSecurity { sql } => self.policy(self.created(), sql),
            Step::AddTable { table } => self.new.table(table).map_or(Ok(()), |t| self.new_table(t)),
            Step::AddView { view } => self.new.view(view).map_or(Ok(()), |v| self.new_view(v)),
            Step::DisconnectAllUsers => {
                let text =
                    "!!! Warning: All clients will be disconnected due to breaking schema changes";
                let warning = self.paint(Paint::Warning, text);
                writeln!(self.out, "{warning}")
            }
            Step::ChangeAccess { table } => self.access(table),
            Step::ChangeColumns { table } => self.line(self.changed(), "columns for table", table),
            Step::ReschemaEventTable { table } => {
                self.line(self.changed(), "schema of event table", table)
            }
            Step::ChangeTableAccessorName { table } => self.table_accessor(table),
            Step::ChangeColumnAccessorName { table, column } => self.column_accessor(table, column),
            step => self.part_of_table(step),
        }
    }

    fn line(&mut self, word: Painted<&str>, what: &str, name: &str) -> fmt::Result {
        let name = self.name(name);
        writeln!(self.out, "▸ {word} {what} {name}")
    }

    fn policy(&mut self, word: Painted<&str>, sql: &str) -> fmt::Result {
        writeln!(self.out, "▸ {word} row level security policy:\n    `{sql}`")
    }

    /// Steps about something inside of a table that both or one of the definitions have.
    fn part_of_table(&mut self, step: &Step) -> fmt::Result {
        let table = step.table().unwrap_or_default();
        let (Some(old), Some(new)) = (self.old.table(table), self.new.table(table)) else {
            return Ok(());
        };
        let part = step.part().unwrap_or_default();
        match step.kind() {
            StepKind::RemoveIndex | StepKind::RemoveConstraint | StepKind::RemoveSequence => {
                self.part(self.removed(), old, part)
            }
            StepKind::AddIndex | StepKind::AddConstraint | StepKind::AddSequence => {
                self.part(self.created(), new, part)
            }
            StepKind::RemoveSchedule => self.schedule(self.removed(), old),
            StepKind::AddSchedule => self.schedule(self.created(), new),
            StepKind::AddColumns => self.columns(old, new),
            StepKind::ChangeIndexSourceName => {
                let what = format!("source name of index {}", self.name(local(new, part)));
                self.renamed(
                    &what,
                    &new.name,
                    index_source(old, part),
                    index_source(new, part),
                )
            }
            StepKind::ChangePrimaryKey => self.primary_key(old, new),
            _ => Ok(()),
        }
    }

    fn new_table(&mut self, table: &TableDef) -> fmt::Result {
        let (created, name) = (self.created(), self.name(&table.name));
        let access = table.access.as_str();
        writeln!(self.out, "▸ {created} user table: {name} ({access})")?;
        self.column_list(&table.columns)?;
        self.heading("Unique constraints", table.constraints.is_empty())?;
        for constraint in &table.constraints {
            let columns = listed(table, &constraint.columns);
            let name = self.name(local(table, &constraint.name));
            writeln!(self.out, "        • {name} on {columns}")?;
        }
        self.heading("Indexes", table.indexes.is_empty())?;
        for index in &table.indexes {
            let columns = listed(table, index.algorithm.columns());
            let name = self.name(local(table, &index.name));
            writeln!(self.out, "        • {name} on {columns}")?;
        }
        self.heading("Auto-increment constraints", table.sequences.is_empty())?;
        for sequence in &table.sequences {
            let column = column_name(table, sequence.column);
            let name = self.name(local(table, &sequence.name));
            writeln!(self.out, "        • {name} on {column}")?;
        }
        self.heading("Schedule", table.schedule.is_none())?;
        if let Some(schedule) = &table.schedule {
            let (kind, name) = (kind_word(schedule), self.name(&schedule.function_name));
            writeln!(self.out, "        • Calls {kind}: {name}")?;
        }
        self.out.write_str("\n")
    }

    fn new_view(&mut self, view: &ViewDef) -> fmt::Result {
        let (created, name) = (self.created(), self.name(&view.name));
        // The reference's arrow is doubled here.
        writeln!(self.out, "▸ ▸ {created} {}: {name}", view_kind(view))?;
        self.heading("Parameters", view.params.is_empty())?;
        for (at, parameter) in view.params.elements.iter().enumerate() {
            let name = parameter
                .name()
                .map_or_else(|| at.to_string(), str::to_owned);
            let ty = self.paint(Paint::Type, &parameter.algebraic_type);
            let name = self.name(name);
            writeln!(self.out, "        • {name}: {ty}")?;
        }
        self.column_list(&view.columns)?;
        self.out.write_str("\n")
    }

    fn heading(&mut self, text: &str, is_left_out: bool) -> fmt::Result {
        if is_left_out {
            return Ok(());
        }
        let heading = self.paint(Paint::Heading, text);
        writeln!(self.out, "    {heading}:")
    }

    fn column_list(&mut self, columns: &[ColumnDef]) -> fmt::Result {
        self.heading("Columns", columns.is_empty())?;
        for column in columns {
            let (name, ty) = (self.name(&column.name), self.paint(Paint::Type, &column.ty));
            writeln!(self.out, "        • {name}: {ty}")?;
        }
        Ok(())
    }

    fn columns(&mut self, old: &TableDef, new: &TableDef) -> fmt::Result {
        let is_added = |column: &&ColumnDef| old.columns.iter().all(|c| c.name != column.name);
        let (created, name) = (self.created(), self.name(&new.name));
        writeln!(self.out, "▸ {created} column in table {name}")?;
        for column in new.columns.iter().filter(is_added) {
            let (name, ty) = (self.name(&column.name), self.paint(Paint::Type, &column.ty));
            let default = default_text(column);
            writeln!(self.out, "    + {name}: {ty} (default: {default})")?;
        }
        Ok(())
    }

    /// An index, a constraint or a sequence; their names are all different.
    fn part(&mut self, word: Painted<&str>, table: &TableDef, name: &str) -> fmt::Result {
        let index = table.indexes.iter().find(|index| index.name == name);
        let constraint = table.constraints.iter().find(|unique| unique.name == name);
        let sequence = table.sequences.iter().find(|counted| counted.name == name);
        let (what, on) = match (index, constraint, sequence) {
            (Some(index), ..) => ("index", listed(table, index.algorithm.columns())),
            (_, Some(unique), _) => ("unique constraint", listed(table, &unique.columns)),
            (.., Some(sequence)) => {
                let column = column_name(table, sequence.column);
                ("auto-increment constraint", format!("column {column}"))
            }
            (None, None, None) => return Ok(()),
        };
        let (part, table) = (self.name(local(table, name)), self.name(&table.name));
        writeln!(self.out, "▸ {word} {what} {part} on {on} of table {table}")
    }

    fn schedule(&mut self, word: Painted<&str>, table: &TableDef) -> fmt::Result {
        let Some(schedule) = &table.schedule else {
            return Ok(());
        };
        let (kind, function) = (kind_word(schedule), self.name(&schedule.function_name));
        let table = self.name(&table.name);
        writeln!(
            self.out,
            "▸ {word} schedule for table {table} calling {kind} {function}"
        )
    }

    fn access(&mut self, table: &str) -> fmt::Result {
        let (Some(old), Some(new)) = (Stored::of(self.old, table), Stored::of(self.new, table))
        else {
            return Ok(());
        };
        let (old, new) = (old.access.as_str(), new.access.as_str());
        let kind = self.kind_of(table);
        let (changed, name) = (self.changed(), self.name(table));
        writeln!(
            self.out,
            "▸ {changed} access for {kind} {name} ({old} → {new})"
        )
    }

    fn primary_key(&mut self, old: &TableDef, new: &TableDef) -> fmt::Result {
        let key = |table: &TableDef| table.primary_key.map(|key| column_name(table, key));
        let what = match (key(old), key(new)) {
            (Some(old), Some(new)) => format!("{old} → {new}"),
            (None, Some(new)) => format!("added: {new}"),
            (_, None) => "removed".to_owned(),
        };
        let (changed, name) = (self.changed(), self.name(&new.name));
        writeln!(self.out, "▸ {changed} primary key on table {name} ({what})")
    }

    fn table_accessor(&mut self, table: &str) -> fmt::Result {
        let source = |module| Stored::of(module, table).map_or("", |stored| stored.source_name);
        let (old, new) = (source(self.old), source(self.new));
        self.renamed("accessor name", table, old, new)
    }

    fn column_accessor(&mut self, table: &str, column: &str) -> fmt::Result {
        let (Some(old), Some(new)) = (Stored::of(self.old, table), Stored::of(self.new, table))
        else {
            return Ok(());
        };
        let what = format!("accessor name of column {}", self.name(column));
        self.renamed(&what, table, old.source_of(column), new.source_of(column))
    }

    fn renamed(&mut self, what: &str, table: &str, old: &str, new: &str) -> fmt::Result {
        let kind = self.kind_of(table);
        let (changed, name) = (self.changed(), self.name(table));
        writeln!(
            self.out,
            "▸ {changed} {what} of {kind} {name} ({old} → {new})"
        )
    }

    fn kind_of(&self, table: &str) -> &'static str {
        match self.new.table(table) {
            Some(_) => "table",
            None => "view",
        }
    }
}

/// What the plan says of a table, or of the table that holds the rows of a view.
struct Stored<'a> {
    source_name: &'a str,
    access: TableAccess,
    columns: &'a [ColumnDef],
}

impl<'a> Stored<'a> {
    fn of(module: &'a ModuleDef, name: &str) -> Option<Stored<'a>> {
        let table = module.table(name).map(|table| Stored {
            source_name: &table.source_name,
            access: table.access,
            columns: &table.columns,
        });
        table.or_else(|| {
            let view = module.view(name)?;
            Some(Stored {
                source_name: &view.source_name,
                access: view.access(),
                columns: &view.columns,
            })
        })
    }

    fn source_of(&self, column: &str) -> &'a str {
        let found = self.columns.iter().find(|c| c.name == column);
        found.map_or("", |column| &column.source_name)
    }
}

fn index_source<'a>(table: &'a TableDef, index: &str) -> &'a str {
    let found = table.indexes.iter().find(|i| i.name == index);
    found.map_or("", |index| &index.source_name)
}

/// Names of what belongs to a table are shown without the namespace, which the table's name has.
fn local<'a>(table: &TableDef, name: &'a str) -> &'a str {
    let namespace = table.name.rfind('.').map_or("", |dot| &table.name[..=dot]);
    name.strip_prefix(namespace).unwrap_or(name)
}

fn listed(table: &TableDef, columns: &[ColId]) -> String {
    format!("[{}]", column_names(table, columns).join(", "))
}

fn view_kind(view: &ViewDef) -> &'static str {
    match view.is_anonymous {
        true => "anonymous view",
        false => "view",
    }
}

fn kind_word(schedule: &ScheduleDef) -> &'static str {
    match schedule.function_kind {
        ScheduledFunctionKind::Reducer => "reducer",
        ScheduledFunctionKind::Procedure => "procedure",
    }
}

fn default_text(column: &ColumnDef) -> String {
    let bytes = column.default.as_deref().unwrap_or_default();
    match decode_value(&Typespace::default(), &column.ty, &mut Reader::new(bytes)) {
        Ok(value) => clipped(format_args!("{value:#?}")),
        // Validation has decoded it.
        Err(_) => "?".to_owned(),
    }
}
