//! What the texts of live queries mean, before and after an update: names of the code can change hands.

use std::collections::BTreeSet;
use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::cut;
use rustc_hash::FxHashMap;

use crate::error::Refusal;
use lightcone_live::LiveQuery;

/// The most of a query that its error repeats.
const SHOWN_QUERY_BYTES_MAX: usize = 4096;

/// That the texts of a set mean the same tables and columns as before. Names of the code may have changed hands, and clients take
/// the rows that come for those of the old table.
pub(super) fn same_meaning(old: &[Arc<LiveQuery>], new: &[Arc<LiveQuery>]) -> Result<(), Refusal> {
    let (old, new) = (tables_by_text(old), tables_by_text(new));
    for (text, before) in &old {
        let Some(now) = new.get(text) else { continue };
        if let Some(reason) = other_meaning(before, now) {
            let text = cut(text, SHOWN_QUERY_BYTES_MAX);
            return Err(Refusal(format!("{reason}, in: `{text}` [LC0234]")));
        }
    }
    Ok(())
}

/// What one text stands for.
#[derive(Default)]
struct QueryTables<'a> {
    /// The tables that it names, in its order: the returned one is known by its place.
    named: Vec<&'a Arc<TableSchema>>,
    /// With those that row-level security draws in.
    read: BTreeSet<&'a str>,
}

fn tables_by_text(queries: &[Arc<LiveQuery>]) -> FxHashMap<&str, QueryTables<'_>> {
    let mut by_text: FxHashMap<&str, QueryTables<'_>> = FxHashMap::default();
    for query in queries {
        let meaning = by_text.entry(query.query.text()).or_default();
        meaning.named = query.query.named_tables();
        let read = match query.window() {
            Some(window) => window.query.read_tables().collect(),
            None => query.query.read_tables(),
        };
        let read = read.into_iter().map(|table| table.name.as_str());
        meaning.read.extend(read);
    }
    by_text
}

fn other_meaning(before: &QueryTables<'_>, now: &QueryTables<'_>) -> Option<String> {
    for (old, new) in before.named.iter().zip(&now.named) {
        if old.name != new.name {
            return Some(format!(
                "a name that meant the table `{}` means `{}` now",
                old.name, new.name
            ));
        }
        if let Some(column) = moved_column(old, new) {
            return Some(format!(
                "the name `{column}` means another column of the table `{}` now",
                new.name
            ));
        }
    }
    (before.read != now.read).then(|| "its rules read other tables now".to_owned())
}

/// A name that means another column than before.
fn moved_column<'a>(old: &'a TableSchema, new: &TableSchema) -> Option<&'a str> {
    let columns = old.columns.iter();
    let names = columns.flat_map(|column| [Some(&column.name), column.accessor.as_ref()]);
    let meant = |table: &TableSchema, name: &str| {
        let column = table.column_by_accessor_or_name(name)?;
        Some(table.column(column)?.name.clone())
    };
    let mut names = names.flatten().map(String::as_str);
    // A name that means nothing any more is an error of those that use it.
    names.find(|name| {
        let now = meant(new, name);
        now.is_some() && now != meant(old, name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Items;

    #[test]
    fn a_column_is_found_that_lost_its_name_to_another() {
        let items = Items::new(0, 0);
        let schema = items.datastore.table_id_from_name("items");
        let schema = schema.and_then(|id| items.datastore.schema(id));
        let mut old = TableSchema::clone(schema.expect("items"));
        old.columns[0].accessor = Some("a".to_owned());
        old.columns[1].accessor = Some("b".to_owned());
        assert_eq!(moved_column(&old, &old), None);
        let mut new = old.clone();
        new.columns[0].accessor = Some("c".to_owned());
        assert_eq!(moved_column(&old, &new), None, "`a` means nothing now");
        new.columns[1].accessor = Some("a".to_owned());
        assert_eq!(moved_column(&old, &new), Some("a"));
        // An accessor comes before a canonical name.
        let mut new = old.clone();
        new.columns[1].accessor = Some("id".to_owned());
        assert_eq!(moved_column(&old, &new), Some("id"));
    }
}
