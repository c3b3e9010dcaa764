//! Questions that psql and its like ask, known by their shape: which catalogue table they are about, which columns they want,
//! and which conditions they set. Whatever is not known makes the whole question unknown: no answer is a guess.

use lightcone_schema::{ColumnDef, IndexDef, TableDef};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V};

use super::super::failure::Failure;
use super::super::table::{check_size, text, SmallTable};
use super::super::types::{name_of_oid, oid_of};
use super::super::words::Piece;
use super::tables::PUBLIC_OID;
use super::Seen;

/// Tables of which nothing is there.
const EMPTY: [&str; 22] = [
    "pg_policy",
    "pg_statistic_ext",
    "pg_publication",
    "pg_inherits",
    "pg_proc",
    "pg_roles",
    "pg_trigger",
    "pg_rewrite",
    "pg_extension",
    "pg_sequence",
    "pg_sequences",
    "pg_matviews",
    "pg_event_trigger",
    "pg_foreign_table",
    "pg_foreign_server",
    "pg_subscription",
    "pg_description",
    "pg_enum",
    "pg_range",
    "pg_cast",
    "pg_collation",
    "pg_tablespace",
];

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Nothing,
    Tables,
    Columns,
    Indexes,
    Schemas,
    Databases,
}

/// One thing that a question is about.
#[derive(Clone, Copy)]
enum Thing<'t> {
    Table(u32, &'t TableDef),
    Column(u32, &'t TableDef, i16, &'t ColumnDef),
    Index(u32, &'t TableDef, &'t IndexDef),
    Schema,
    Database,
}

/// A value, or NULL.
type Field = Option<V>;

/// Questions of a known shape have at most so many words and signs, and their patterns so many characters: the time that they
/// take is the product of these and what there is in a database.
const PIECES_MAX: usize = 4_000;
const PATTERN_PARTS_MAX: usize = 256;

/// The answer to a question of a known shape.
pub(super) fn answer(
    catalogue: &Seen<'_>,
    pieces: &[Piece],
) -> Option<Result<SmallTable, Failure>> {
    if pieces.len() > PIECES_MAX {
        return None;
    }
    let [Piece::Word(select), rest @ ..] = pieces else {
        return None;
    };
    let is_other = |at: usize| {
        let other = ["distinct", "group", "having", "limit", "offset", "or"];
        other.iter().any(|word| rest[at].is_word(word))
    };
    if select != "select" || outside(rest).any(is_other) {
        return None;
    }
    let (list, rest) = split_at_word(rest, "from")?;
    let (from, rest) = split_at_word(rest, "where").unwrap_or((until_clause(rest), &[]));
    let conditions = until_clause(rest);
    let items: Vec<Item<'_>> = items(list)?;
    let subject = subject(from)?;
    let of_nothing = subject == Subject::Nothing;
    if !of_nothing && outside(pieces).any(|at| pieces[at].is_word("union")) {
        return None;
    }
    let conditions: Vec<Condition> = match of_nothing || conditions.is_empty() {
        true => Vec::new(),
        false => split(conditions, |piece| piece.is_word("and"))
            .into_iter()
            .map(condition)
            .collect::<Option<_>>()?,
    };
    let mut table = SmallTable {
        columns: items
            .iter()
            .map(|item| (item.name.clone(), T::String))
            .collect(),
        rows: Vec::new(),
    };
    let things = things(catalogue, subject);
    if let Err(failure) = check_size(things.len(), items.len()) {
        return Some(Err(failure));
    }
    for thing in things {
        if conditions.iter().all(|condition| condition.holds(&thing)) {
            let row = items
                .iter()
                .map(|item| value(item.expression, &item.name, &thing, catalogue));
            table.rows.push(row.collect::<Option<_>>()?);
        }
    }
    // The types follow from the values; one without rows stays text.
    if let Some(row) = table.rows.first() {
        for ((_, ty), value) in table.columns.iter_mut().zip(row) {
            *ty = match value {
                Some(V::Bool(_)) => T::Bool,
                Some(V::U32(_)) => T::U32,
                Some(V::I16(_)) => T::I16,
                _ => T::String,
            };
        }
    }
    Some(Ok(table))
}

/// Divides at a word outside of all parentheses.
fn split_at_word<'p>(pieces: &'p [Piece], word: &str) -> Option<(&'p [Piece], &'p [Piece])> {
    let at = outside(pieces).find(|at| pieces[*at].is_word(word))?;
    Some((&pieces[..at], &pieces[at + 1..]))
}

/// Positions outside of all parentheses.
fn outside(pieces: &[Piece]) -> impl Iterator<Item = usize> + '_ {
    let mut depth = 0_usize;
    pieces.iter().enumerate().filter_map(move |(at, piece)| {
        match piece {
            Piece::Symbol('(') => depth += 1,
            Piece::Symbol(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

fn split(pieces: &[Piece], is_end: impl Fn(&Piece) -> bool) -> Vec<&[Piece]> {
    let mut parts = Vec::new();
    let mut start = 0;
    for at in outside(pieces).filter(|at| is_end(&pieces[*at])) {
        parts.push(&pieces[start..at]);
        start = at + 1;
    }
    parts.push(&pieces[start..]);
    parts
}

/// What stands before the clauses behind `WHERE`.
fn until_clause(pieces: &[Piece]) -> &[Piece] {
    let is_clause = |at: &usize| {
        ["order", "union", "limit"]
            .iter()
            .any(|word| pieces[*at].is_word(word))
    };
    let end = outside(pieces).find(is_clause);
    &pieces[..end.unwrap_or(pieces.len())]
}

/// The names of the tables that are read, outside of subqueries.
fn subject(from: &[Piece]) -> Option<Subject> {
    let names: Vec<&str> = outside(from).filter_map(|at| from[at].name()).collect();
    let has = |name: &str| names.contains(&name);
    if EMPTY.iter().any(|name| has(name)) || (has("pg_type") && !has("pg_attribute")) {
        return Some(Subject::Nothing);
    }
    let subjects = [
        ("pg_attribute", Subject::Columns),
        ("pg_index", Subject::Indexes),
        ("pg_class", Subject::Tables),
        ("pg_namespace", Subject::Schemas),
        ("pg_database", Subject::Databases),
    ];
    let found = subjects.iter().find(|(name, _)| has(name));
    found.map(|(_, subject)| *subject)
}

fn things<'t>(catalogue: &'t Seen<'_>, subject: Subject) -> Vec<Thing<'t>> {
    let tables = catalogue.tables.iter();
    match subject {
        Subject::Nothing => Vec::new(),
        Subject::Tables => tables
            .map(|(oid, table)| Thing::Table(*oid, table))
            .collect(),
        Subject::Columns => tables
            .flat_map(|(oid, table)| {
                let numbered = (1_i16..).zip(&table.columns);
                numbered.map(|(number, column)| Thing::Column(*oid, table, number, column))
            })
            .collect(),
        Subject::Indexes => tables
            .flat_map(|(oid, table)| {
                table
                    .indexes
                    .iter()
                    .map(|index| Thing::Index(*oid, table, index))
            })
            .collect(),
        Subject::Schemas => vec![Thing::Schema],
        Subject::Databases => vec![Thing::Database],
    }
}

/// An item of a select list.
struct Item<'p> {
    name: String,
    expression: &'p [Piece],
}

fn items(list: &[Piece]) -> Option<Vec<Item<'_>>> {
    let items = split(list, |piece| piece.is_symbol(','));
    items.into_iter().map(item).collect()
}

fn item(pieces: &[Piece]) -> Option<Item<'_>> {
    let (name, expression) = match pieces {
        [expression @ .., Piece::Word(word), name] if word == "as" => (name.name()?, expression),
        expression => (key_of(expression).unwrap_or("?column?"), expression),
    };
    // All columns, and what counts rows, are more than the columns that are known here.
    let is_all = expression.last()?.is_symbol('*');
    let counts =
        ["count", "max", "min", "sum", "exists"].contains(&key_of(expression).unwrap_or(""));
    (!is_all && !counts).then(|| Item {
        name: name.to_owned(),
        expression,
    })
}

/// The column or function that an expression is about.
fn key_of(mut expression: &[Piece]) -> Option<&str> {
    // A loop, as a stranger says how deep it goes.
    loop {
        expression = match expression {
            [Piece::Word(word), rest @ ..] if word == "case" => {
                let start = usize::from(rest.first().is_some_and(|piece| piece.is_word("when")));
                &rest[start..]
            }
            [qualifier, Piece::Symbol('.'), rest @ ..] if qualifier.name().is_some() => rest,
            [name, ..] => return name.name(),
            [] => return None,
        };
    }
}

/// The value of an expression. None: it is not known.
fn value(
    expression: &[Piece],
    name: &str,
    thing: &Thing<'_>,
    catalogue: &Seen<'_>,
) -> Option<Field> {
    match expression {
        [Piece::Text(constant)] => return Some(Some(text(constant))),
        [Piece::Word(word)] if word == "null" => return Some(None),
        [Piece::Word(word)] if word == "true" || word == "false" => {
            return Some(Some(V::Bool(word == "true")))
        }
        // Subqueries ask for defaults, collations and comments.
        [Piece::Symbol('('), ..] => return Some(None),
        _ => {}
    }
    let key = key_of(expression)?;
    let key = match (key, name, thing) {
        ("relname", "Table", Thing::Index(..)) => "table",
        (key, _, _) => key,
    };
    let found = field(key, thing, catalogue)?;
    if !expression[0].is_word("case") {
        return Some(found);
    }
    // `CASE key WHEN 'a' THEN 'b' …`
    let Some(V::String(found)) = &found else {
        return Some(found);
    };
    let mut chosen = expression.windows(4).filter_map(|four| match four {
        [when, Piece::Text(is), then, Piece::Text(becomes)]
            if when.is_word("when") && then.is_word("then") && **is == **found =>
        {
            Some(becomes)
        }
        _ => None,
    });
    match chosen.next() {
        Some(becomes) => Some(Some(text(becomes))),
        None => Some(Some(text(found))),
    }
}

/// A column of the catalogue, or what a function says of a thing.
fn field(key: &str, thing: &Thing<'_>, catalogue: &Seen<'_>) -> Option<Field> {
    let no = Some(V::Bool(false));
    Some(match (key, thing) {
        ("pg_get_userbyid", _) => Some(text(&catalogue.asker.user)),
        ("obj_description" | "col_description" | "description" | "pg_size_pretty", _) => None,
        ("nspname", _) => Some(text("public")),
        ("reltablespace", _) => Some(V::U32(0)),
        ("relpersistence", _) => Some(text("p")),
        ("amname", Thing::Index(..)) => Some(text("btree")),
        ("amname", _) => Some(text("heap")),
        ("oid", Thing::Table(oid, _)) => Some(V::U32(*oid)),
        ("oid", Thing::Schema) => Some(V::U32(PUBLIC_OID)),
        ("relname", Thing::Table(_, table) | Thing::Column(_, table, ..))
        | ("table", Thing::Index(_, table, _)) => Some(text(&table.name)),
        ("relkind", Thing::Table(..) | Thing::Column(..)) => Some(text("r")),
        ("relkind", Thing::Index(..)) => Some(text("i")),
        ("relhasindex", Thing::Table(_, table)) => Some(V::Bool(!table.indexes.is_empty())),
        ("relchecks", Thing::Table(..)) => Some(V::I16(0)),
        (
            "relhasrules"
            | "relhastriggers"
            | "relrowsecurity"
            | "relforcerowsecurity"
            | "relhasoids"
            | "relispartition",
            Thing::Table(..),
        ) => no,
        ("reloftype", Thing::Table(..)) => Some(text("")),
        ("relreplident", Thing::Table(..)) => Some(text("d")),
        ("attname", Thing::Column(.., column)) => Some(text(&column.name)),
        ("attnum", Thing::Column(_, _, number, _)) => Some(V::I16(*number)),
        ("attrelid", Thing::Column(oid, ..)) => Some(V::U32(*oid)),
        ("atttypid", Thing::Column(.., column)) => Some(V::U32(oid_of(&column.ty))),
        ("atttypmod", Thing::Column(..)) => Some(V::I16(-1)),
        ("format_type", Thing::Column(.., column)) => Some(text(name_of_oid(oid_of(&column.ty)))),
        ("attnotnull", Thing::Column(..)) => Some(V::Bool(true)),
        ("atthasdef" | "attisdropped", Thing::Column(..)) => no,
        ("attgenerated", Thing::Column(..)) => Some(text("")),
        ("attidentity", Thing::Column(_, table, number, _)) => {
            let mut sequences = table.sequences.iter();
            let is_generated = sequences.any(|s| i32::from(s.column.0) + 1 == i32::from(*number));
            Some(text(if is_generated { "d" } else { "" }))
        }
        ("relname", Thing::Index(.., index)) => Some(text(&index.name)),
        ("indisprimary", Thing::Index(_, table, index)) => {
            Some(V::Bool(kind_of(table, index) == Some("PRIMARY KEY")))
        }
        ("indisunique", Thing::Index(_, table, index)) => {
            Some(V::Bool(kind_of(table, index).is_some()))
        }
        ("indisvalid", Thing::Index(..)) => Some(V::Bool(true)),
        (
            "indisclustered" | "condeferrable" | "condeferred" | "indisreplident",
            Thing::Index(..),
        ) => no,
        ("contype", Thing::Index(_, table, index)) => {
            let letter = |kind| text(if kind == "PRIMARY KEY" { "p" } else { "u" });
            kind_of(table, index).map(letter)
        }
        ("pg_get_constraintdef", Thing::Index(_, table, index)) => {
            let columns = columns_of(table, index);
            kind_of(table, index).map(|kind| text(&format!("{kind} ({columns})")))
        }
        ("pg_get_indexdef", Thing::Index(_, table, index)) => {
            let unique = if kind_of(table, index).is_some() {
                "UNIQUE "
            } else {
                ""
            };
            Some(text(&format!(
                "CREATE {unique}INDEX {} ON public.{} USING btree ({})",
                index.name,
                table.name,
                columns_of(table, index)
            )))
        }
        ("datname", Thing::Database) => Some(text(&catalogue.asker.database)),
        ("pg_encoding_to_char", Thing::Database) => Some(text("UTF8")),
        ("datcollate" | "datctype", Thing::Database) => Some(text("C")),
        ("datlocprovider", Thing::Database) => Some(text("c")),
        ("daticulocale" | "array_to_string", Thing::Database) => None,
        _ => return None,
    })
}

/// Which constraint an index is of.
fn kind_of(table: &TableDef, index: &IndexDef) -> Option<&'static str> {
    let columns = index.algorithm.columns();
    let mut constraints = table.constraints.iter();
    constraints.find(|constraint| *constraint.columns == *columns)?;
    match table.primary_key {
        Some(key) if *columns == [key] => Some("PRIMARY KEY"),
        _ => Some("UNIQUE"),
    }
}

fn columns_of(table: &TableDef, index: &IndexDef) -> String {
    let ids = index.algorithm.columns().iter();
    let names = ids.map(|id| table.columns[usize::from(id.0)].name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// A condition that is understood.
#[derive(Debug)]
enum Condition {
    /// True of everything there is.
    Always,
    /// One of these kinds of relation.
    Kind(Vec<String>),
    TableOid(u32),
    TableName(Pattern),
    SchemaName(Pattern),
    ColumnName(Pattern),
}

impl Condition {
    fn holds(&self, thing: &Thing<'_>) -> bool {
        let (oid, table) = match thing {
            Thing::Table(oid, table)
            | Thing::Column(oid, table, ..)
            | Thing::Index(oid, table, _) => (Some(*oid), Some(*table)),
            Thing::Schema | Thing::Database => (None, None),
        };
        match self {
            Condition::Always => true,
            Condition::Kind(kinds) => {
                let kind = if matches!(thing, Thing::Index(..)) {
                    "i"
                } else {
                    "r"
                };
                kinds.iter().any(|known| known == kind)
            }
            Condition::TableOid(wanted) => oid == Some(*wanted),
            Condition::TableName(pattern) => {
                table.is_some_and(|table| pattern.matches(&table.name))
            }
            Condition::SchemaName(pattern) => pattern.matches("public"),
            Condition::ColumnName(pattern) => match thing {
                Thing::Column(.., column) => pattern.matches(&column.name),
                _ => false,
            },
        }
    }
}

fn condition(pieces: &[Piece]) -> Option<Condition> {
    let key = key_of(pieces)?;
    // What stands behind the column.
    let column_end = match pieces {
        [_, Piece::Symbol('.'), _, ..] => 3,
        _ => 1,
    };
    let behind = pieces.get(column_end..).unwrap_or_default();
    match (key, behind) {
        ("pg_table_is_visible", _) => Some(Condition::Always),
        ("not", [.., last]) if last.is_word("attisdropped") => Some(Condition::Always),
        ("attisdropped", [Piece::Symbol('='), Piece::Word(no)]) if no == "false" => {
            Some(Condition::Always)
        }
        ("attnum", [Piece::Symbol('>'), Piece::Number(zero)]) if zero == "0" => {
            Some(Condition::Always)
        }
        ("nspname", [Piece::Symbol('<'), Piece::Symbol('>'), Piece::Text(other)])
        | ("nspname", [Piece::Symbol('!'), Piece::Symbol('~' | '='), Piece::Text(other)])
            if other != "public" =>
        {
            Some(Condition::Always)
        }
        ("relkind", [Piece::Word(is_in), Piece::Symbol('('), listed @ .., Piece::Symbol(')')])
            if is_in == "in" =>
        {
            let text = |piece: &Piece| match piece {
                Piece::Text(kind) => Some(kind.clone()),
                _ => None,
            };
            Some(Condition::Kind(listed.iter().filter_map(text).collect()))
        }
        (
            "oid" | "attrelid" | "indrelid",
            [Piece::Symbol('='), Piece::Text(oid) | Piece::Number(oid)],
        ) => oid.parse().ok().map(Condition::TableOid),
        // How the tables of the question hang together.
        (
            "oid" | "indexrelid" | "indrelid" | "attrelid",
            [Piece::Symbol('='), other, Piece::Symbol('.'), _],
        ) if other.name().is_some() => Some(Condition::Always),
        ("relname", behind) => pattern(behind).map(Condition::TableName),
        ("nspname", behind) => pattern(behind).map(Condition::SchemaName),
        ("attname", behind) => pattern(behind).map(Condition::ColumnName),
        _ => None,
    }
}

/// `= 'a'`, `LIKE 'a%'`, `OPERATOR(pg_catalog.~) '^(a.*)$'`.
fn pattern(pieces: &[Piece]) -> Option<Pattern> {
    let (operator, rest) = match pieces {
        [Piece::Word(operator), Piece::Symbol('('), _, Piece::Symbol('.'), Piece::Symbol(symbol), Piece::Symbol(')'), rest @ ..]
            if operator == "operator" =>
        {
            (*symbol, rest)
        }
        [Piece::Symbol(symbol), rest @ ..] => (*symbol, rest),
        [Piece::Word(like), rest @ ..] if like == "like" => ('%', rest),
        _ => return None,
    };
    let written = match rest {
        [Piece::Text(written)] => written,
        [Piece::Text(written), collate, ..] if collate.is_word("collate") => written,
        _ => return None,
    };
    if written.len() > PATTERN_PARTS_MAX {
        return None;
    }
    match operator {
        '=' => Some(Pattern(written.chars().map(Part::Character).collect())),
        '%' => Pattern::like(written),
        '~' => Pattern::regular(written),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Character(char),
    AnyCharacter,
    AnyText,
}

/// A text with wildcards.
#[derive(Debug)]
struct Pattern(Vec<Part>);

impl Pattern {
    fn like(written: &str) -> Option<Pattern> {
        let mut parts = Vec::new();
        let mut characters = written.chars();
        while let Some(c) = characters.next() {
            parts.push(match c {
                '%' => Part::AnyText,
                '_' => Part::AnyCharacter,
                '\\' => Part::Character(characters.next()?),
                c => Part::Character(c),
            });
        }
        Some(Pattern(parts))
    }

    /// What psql makes of a name with wildcards: `^(…)$`, in it `.*` and `.`.
    fn regular(written: &str) -> Option<Pattern> {
        let inner = written.strip_prefix("^(")?.strip_suffix(")$")?;
        let mut parts = Vec::new();
        let mut characters = inner.chars().peekable();
        while let Some(c) = characters.next() {
            parts.push(match c {
                '.' if characters.next_if_eq(&'*').is_some() => Part::AnyText,
                '.' => Part::AnyCharacter,
                '\\' => Part::Character(characters.next()?),
                '(' | ')' | '[' | ']' | '|' | '*' | '+' | '?' | '^' | '$' | '{' | '}' => {
                    return None
                }
                c => Part::Character(c),
            });
        }
        Some(Pattern(parts))
    }

    /// In time that the product of the two lengths bounds.
    fn matches(&self, text: &str) -> bool {
        // Which beginnings of the pattern match what was read.
        let mut reached = vec![false; self.0.len() + 1];
        reached[0] = true;
        self.skip(&mut reached);
        for c in text.chars() {
            let mut next = vec![false; reached.len()];
            for (at, part) in self.0.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match part {
                    Part::Character(wanted) if *wanted != c => {}
                    Part::Character(_) | Part::AnyCharacter => next[at + 1] = true,
                    Part::AnyText => next[at] = true,
                }
            }
            self.skip(&mut next);
            reached = next;
        }
        reached[self.0.len()]
    }

    /// Any text may be none.
    fn skip(&self, reached: &mut [bool]) {
        for (at, part) in self.0.iter().enumerate() {
            if reached[at] && *part == Part::AnyText {
                reached[at + 1] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_expressions_need_no_stack() {
        let mut pieces = vec![Piece::Word("case".to_owned()); 200_000];
        for _ in 0..200_000 {
            pieces.extend([Piece::Word("a".to_owned()), Piece::Symbol('.')]);
        }
        pieces.push(Piece::Word("b".to_owned()));
        assert_eq!(key_of(&pieces), Some("b"));
    }

    #[test]
    fn patterns() {
        let like = |written, text| Pattern::like(written).expect("a pattern").matches(text);
        assert!(like("a%c_", "abbcd") && like("%", "") && like("a\\_b", "a_b"));
        assert!(!like("a%c_", "abbc") && !like("a\\_b", "axb") && !like("", "a"));
        let regular = |written, text| Pattern::regular(written).expect("a pattern").matches(text);
        assert!(regular("^(per.*)$", "person") && regular("^(p.rson)$", "person"));
        assert!(!regular("^(per)$", "person"));
        assert!(Pattern::regular("^(a|b)$").is_none());
        let long = "%a".repeat(200);
        assert!(!like(&long, &"a".repeat(199)));
    }
}
