//! What tables there are, for programs that ask PostgreSQL's catalogue (08 §19).
//!
//! There are virtual tables for the usual questions, which our own query language reads. Larger questions, as psql and drivers
//! ask them, are known by their shape (`shapes`). All other questions to the catalogue are refused, with their text.

mod shapes;
mod tables;

use lightcone_query::{
    compile_statement, Caller, Catalog, Projection, SelectPlan, Statement, QUERY_BYTES_MAX,
};
use lightcone_schema::{ModuleDef, TableAccess, TableDef, TableSchema};
use lightcone_table::RowLayout;
use lightcone_types::bsatn::encode_value;
use lightcone_types::{AlgebraicType, AlgebraicValue, Identity};
use std::sync::Arc;

use self::tables::VirtualTable;
use super::commands::Asker;
use super::failure::{state, Failure};
use super::table::{check_size, SmallTable};
use super::words::Piece;

/// At most so many characters of a question come back in a refusal.
const SHOWN_CHARS_MAX: usize = 2_000;
/// A question in our language has at most so many bytes while it is made; a statement then has fewer.
const REWRITTEN_BYTES_MAX: usize = 4 * QUERY_BYTES_MAX;
/// The object id of the first table; the others follow by name.
const FIRST_TABLE_OID: u32 = 16_384;

/// Does a statement ask the catalogue?
pub(super) fn is_asked(pieces: &[Piece]) -> bool {
    let is_first = |word| pieces.first().is_some_and(|piece| piece.is_word(word));
    let is_of_catalogue =
        |name: &str| name.starts_with("pg_") || name.eq_ignore_ascii_case("information_schema");
    // A table, or the schema of one, or of a function.
    let is_named = |pair: &[Piece]| {
        let is_read = pair[0].is_word("from") || pair[0].is_word("join");
        let of_catalogue = |piece: &Piece| piece.name().is_some_and(is_of_catalogue);
        is_read && of_catalogue(&pair[1]) || pair[1].is_symbol('.') && of_catalogue(&pair[0])
    };
    (is_first("select") || is_first("with")) && pieces.windows(2).any(is_named)
}

pub(super) struct Catalogue {
    module: Arc<ModuleDef>,
    is_owner: bool,
    asker: Asker,
}
impl Catalogue {
    pub fn new(module: Arc<ModuleDef>, is_owner: bool, asker: Asker) -> Catalogue {
        Catalogue {
            module,
            is_owner,
            asker,
        }
    }
    pub fn answer(&self, text: &str, _: bool) -> Result<SmallTable, Failure> {
        let pieces = super::words::pieces(text).unwrap_or_default();
        Seen::new(&self.module, self.is_owner, &self.asker).answer(text, &pieces)
    }
}

/// What one caller sees of a database.
pub(super) struct Seen<'c> {
    tables: Vec<(u32, &'c TableDef)>,
    asker: &'c Asker,
}

impl<'c> Seen<'c> {
    pub fn new(module: &'c ModuleDef, is_owner: bool, asker: &'c Asker) -> Seen<'c> {
        let numbered = (FIRST_TABLE_OID..).zip(&module.tables);
        let may_see = |table: &TableDef| is_owner || table.access == TableAccess::Public;
        Seen {
            tables: numbered.filter(|(_, table)| may_see(table)).collect(),
            asker,
        }
    }

    /// Answers a question.
    pub fn answer(&self, text: &str, pieces: &[Piece]) -> Result<SmallTable, Failure> {
        if let Some(answer) = shapes::answer(self, pieces) {
            return answer;
        }
        let virtual_tables = VirtualTables(tables::all(self));
        let Some(question) = in_our_language(pieces) else {
            return Err(not_answered(text, "its lists are too long"));
        };
        let compiled = compile_statement(&question, &virtual_tables, &anybody());
        match compiled.map(Statement::into_query) {
            Ok(Some(query)) => match query.only_select_plan(&Identity::ZERO) {
                Some(plan) => virtual_tables.select(&plan),
                None => Err(not_answered(text, "it reads several tables")),
            },
            Ok(None) => Err(not_answered(text, "it is no query")),
            Err(error) => Err(not_answered(text, &error.to_string())),
        }
    }
}

fn anybody() -> Caller {
    Caller {
        identity: Identity::ZERO,
        is_owner: false,
    }
}

fn not_answered(text: &str, reason: &str) -> Failure {
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    Failure::new(
        state::FEATURE_NOT_SUPPORTED,
        format!("this question to the catalogue is not supported ({reason}): {shown}"),
    )
}

/// A question without what our language does not have and the answer does not need: casts, `ORDER BY` (rows come ordered by
/// their names), the schema `pg_catalog`; and `IN` as comparisons. None: it would become longer than any statement may be.
fn in_our_language(pieces: &[Piece]) -> Option<String> {
    let mut text = String::new();
    let mut rest = pieces;
    let mut column: Vec<String> = Vec::new();
    while let [piece, behind @ ..] = rest {
        rest = behind;
        match piece {
            Piece::Word(word) if word == "order" => {
                let is_limit = |piece: &Piece| piece.is_word("limit");
                let limit = behind.iter().position(is_limit);
                rest = &behind[limit.unwrap_or(behind.len())..];
                continue;
            }
            Piece::Word(schema)
                if schema == "pg_catalog" && behind.first().is_some_and(|p| p.is_symbol('.')) =>
            {
                rest = &behind[1..];
                continue;
            }
            Piece::Symbol(':') if behind.first().is_some_and(|p| p.is_symbol(':')) => {
                rest = behind.get(2..).unwrap_or_default();
                continue;
            }
            Piece::Word(word) if word == "in" || word == "not" => {
                let is_not = word == "not";
                let list = if is_not {
                    behind.get(1..).unwrap_or_default()
                } else {
                    behind
                };
                let is_in = !is_not || behind.first().is_some_and(|p| p.is_word("in"));
                let is_compared = is_in && !column.is_empty();
                if let (true, Some((values, behind))) = (is_compared, listed(list)) {
                    let name: String = std::mem::take(&mut column).concat();
                    let before = text.trim_end().strip_suffix(&name)?.len();
                    text.truncate(before);
                    let names_bytes = values.len().saturating_mul(name.len());
                    if text.len().saturating_add(names_bytes) > REWRITTEN_BYTES_MAX {
                        return None;
                    }
                    let compared = values.iter().map(|value| format!("{name} = {value}"));
                    let compared = compared.collect::<Vec<_>>().join(" OR ");
                    text.push_str(if is_not { "NOT (" } else { "(" });
                    text.push_str(&compared);
                    text.push_str(") ");
                    rest = behind;
                    continue;
                }
            }
            _ => {}
        }
        let written = written(piece);
        let is_joined = piece.is_symbol('.') || column.last().is_some_and(|last| last == ".");
        match piece {
            _ if is_joined => column.push(written.clone()),
            _ => column = vec![written.clone()],
        }
        if is_joined {
            text.truncate(text.trim_end().len());
        }
        text.push_str(&written);
        let is_operator = matches!(piece, Piece::Symbol('<' | '>' | '!' | '='));
        let is_continued = matches!(rest.first(), Some(Piece::Symbol('=' | '>')));
        if !(is_operator && is_continued) {
            text.push(' ');
        }
    }
    (text.len() <= REWRITTEN_BYTES_MAX).then_some(text)
}

fn written(piece: &Piece) -> String {
    match piece {
        Piece::Word(word) => word.clone(),
        Piece::Quoted(name) => format!("\"{}\"", name.replace('"', "\"\"")),
        Piece::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Piece::Number(number) => number.clone(),
        Piece::Symbol(symbol) => symbol.to_string(),
    }
}

/// `(literal, …)`, and what stands behind it.
fn listed(pieces: &[Piece]) -> Option<(Vec<String>, &[Piece])> {
    let [Piece::Symbol('('), pieces @ ..] = pieces else {
        return None;
    };
    let mut values = Vec::new();
    let mut rest = pieces;
    // Never beyond the first piece that belongs to no list: there may be many lists without an end.
    while let [literal @ (Piece::Text(_) | Piece::Number(_)), Piece::Symbol(next @ (',' | ')')), behind @ ..] =
        rest
    {
        values.push(written(literal));
        if *next == ')' {
            return Some((values, behind));
        }
        rest = behind;
    }
    None
}

/// The virtual tables as our query language sees them.
struct VirtualTables(Vec<VirtualTable>);

impl Catalog for VirtualTables {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        let found = self.0.iter().find(|table| table.schema.name == name);
        found.map(|table| table.schema.clone())
    }
}

impl VirtualTables {
    fn select(&self, plan: &SelectPlan) -> Result<SmallTable, Failure> {
        let found = self.0.iter().find(|table| table.schema.id == plan.table.id);
        let table = found.expect("plans are of these tables");
        let types: Vec<AlgebraicType> = plan
            .table
            .columns
            .iter()
            .map(|column| column.ty.clone())
            .collect();
        let layout = RowLayout::new(&types);
        let matches = |row: &&Vec<AlgebraicValue>| match &plan.predicate {
            Some(predicate) => {
                let mut bsatn = Vec::new();
                row.iter().for_each(|value| encode_value(value, &mut bsatn));
                predicate.matches(&layout, &bsatn)
            }
            None => true,
        };
        let found: Vec<&Vec<AlgebraicValue>> = table.rows.iter().filter(matches).collect();
        let elements = plan.output_type().elements;
        check_size(found.len(), elements.len())?;
        let rows: Vec<Vec<AlgebraicValue>> = match &plan.projection {
            Projection::Count(_) => vec![vec![AlgebraicValue::U64(found.len() as u64)]],
            Projection::Row => found.into_iter().cloned().collect(),
            Projection::Columns(columns) => {
                let of = |row: &Vec<AlgebraicValue>| {
                    let listed = columns.iter().map(|(id, _)| row[usize::from(id.0)].clone());
                    listed.collect()
                };
                found.into_iter().map(of).collect()
            }
        };
        let limit = plan.limit.map_or(usize::MAX, |limit| limit as usize);
        let optional = |row: Vec<AlgebraicValue>| row.into_iter().map(Some).collect();
        Ok(SmallTable {
            columns: elements
                .iter()
                .map(|e| {
                    (
                        e.name().unwrap_or_default().to_owned(),
                        e.algebraic_type.clone(),
                    )
                })
                .collect(),
            rows: rows.into_iter().take(limit).map(optional).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::pieces;
    use super::*;

    #[test]
    fn questions_are_recognised_and_put_into_our_language() {
        let of = |text: &str| pieces(text).expect("pieces");
        for text in [
            "SELECT * FROM pg_tables",
            "select 1 from information_schema.tables",
            "SELECT c.oid FROM pg_catalog.pg_class c",
            "WITH x AS (SELECT 1) SELECT pg_catalog.format_type(1, 2)",
        ] {
            assert!(is_asked(&of(text)), "{text}");
        }
        for text in [
            "SELECT * FROM page",
            "SELECT pg_x FROM t",
            "DELETE FROM pg_tables",
        ] {
            assert!(!is_asked(&of(text)), "{text}");
        }
        let question = "SELECT t.\"a\"::text FROM pg_catalog.pg_tables AS t WHERE t.schemaname NOT IN ('pg_catalog', 'x') AND n <> 3 AND m IN (1) ORDER BY 1, 2 LIMIT 3";
        assert_eq!(
            in_our_language(&of(question)).expect("it is short"),
            "select t.\"a\" from pg_tables as t where NOT (t.schemaname = 'pg_catalog' OR t.schemaname = 'x') and n <> 3 and (m = 1) limit 3 "
        );
    }
    #[test]
    fn lists_are_bounded() {
        let of = |text: &str| in_our_language(&pieces(text).expect("pieces"));
        // Without an end, many times.
        let open = format!("select {}", "in (1, in (".repeat(20_000));
        assert!(of(&open).is_none_or(|text| text.len() <= REWRITTEN_BYTES_MAX));
        let product = format!("{} in (1{})", "a".repeat(20_000), ",1".repeat(10_000));
        assert_eq!(of(&product), None);
        // What stands behind a list is no column.
        assert_eq!(of("é in (1) in (2)").as_deref(), Some("(é = 1) in ( 2 ) "));
    }
}
