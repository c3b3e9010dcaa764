//! `EXPLAIN`: the plan of a query as rows of text, with what each part of it looked at.

use lightcone_schema::TableSchema;

use crate::condition::ColumnAt;
use crate::execute::Execution;
use crate::planner::{Access, GroupKind, KeyPart, Step};
use crate::query::{Fragment, Output, Query};

/// The lines about a fragment that was evaluated.
pub(crate) fn explain_fragment(
    query: &Query,
    fragment: &Fragment,
    number: usize,
    execution: &Execution,
) -> Vec<String> {
    let mut lines = Vec::new();
    for rule in &fragment.rules {
        lines.push(format!("rule: {rule}"));
    }
    if query.fragments.len() > 1 {
        let count = query.fragments.len();
        lines.insert(0, format!("part {} of {count}:", number + 1));
    }
    if !fragment.rules.is_empty() {
        // The order of the steps, and how each finds its rows, follow from how many rows there are that rules hide.
        let names = fragment.tables.iter().enumerate();
        lines.extend(names.map(|(relation, table)| format!("  {} #{relation}", table.name)));
        lines.push("  in an order that is not shown, as rules hide rows".to_owned());
        return lines;
    }
    for (at, (step, read)) in execution.steps().enumerate() {
        let mut line = place_text(execution, at, step) + &step_text(fragment, step);
        // How many rows a view has for other callers is not shown.
        let table = &fragment.tables[usize::from(step.relation)];
        if table.view.is_none() {
            line += &format!(", about {:.0} rows", step.rows);
        }
        let kept = if step.own.is_some() || step.joined.is_some() {
            " by conditions"
        } else {
            ""
        };
        let (looked_at, found) = (read.looked_at, read.found);
        line += &format!("; looked at {looked_at}, found {found}{kept}");
        if let Some((leading, Some(values))) = execution.leading() {
            if leading.last == at {
                line += &format!(", {values} distinct");
            }
        }
        lines.push(line);
    }
    lines
}

/// The lines about what is done with the matches.
pub(crate) fn explain_result(query: &Query) -> Vec<String> {
    let mut lines = Vec::new();
    match &query.output {
        Output::Count(_) => lines.push("count".to_owned()),
        Output::Groups(grouping) => {
            let having = match grouping.having {
                Some(_) => ", some of them by HAVING",
                None => "",
            };
            lines.push(format!("groups by {} columns{having}", grouping.keys.len()));
        }
        Output::Row(_) | Output::Columns(_) => {}
    }
    if query.distinct {
        lines.push("distinct rows".to_owned());
    }
    if !query.order.is_empty() {
        lines.push(format!("sorted by {} columns", query.order.len()));
    }
    if query.offset > 0 {
        lines.push(format!("without the first {}", query.offset));
    }
    if let Some(limit) = query.limit {
        lines.push(format!("at most {limit}"));
    }
    lines
}

/// In which subqueries a step is, and what the one is for that begins with it.
fn place_text(execution: &Execution, at: usize, step: &Step) -> String {
    let groups = execution.groups();
    let around = groups
        .iter()
        .filter(|group| group.kind.is_once() && group.first <= at && at <= group.last);
    let leading = execution.leading().map(|(leading, _)| leading);
    let leading = leading.filter(|leading| (leading.first..=leading.last).contains(&at));
    let depth = around.count() + usize::from(leading.is_some());
    let mut text = "  ".repeat(depth + 1);
    if leading.is_some_and(|leading| leading.first == at) {
        text += "leading exists: ";
    }
    let opened = step.opens.map(|group| groups[group].kind);
    text += match opened {
        Some(GroupKind::Exists) => "exists: ",
        Some(GroupKind::NotExists) => "not exists: ",
        Some(GroupKind::Whether) => "whether exists: ",
        Some(GroupKind::Outer) | None => "",
    };
    text
}

fn step_text(fragment: &Fragment, step: &Step) -> String {
    let table = &fragment.tables[usize::from(step.relation)];
    let name = format!("{} #{}", table.name, step.relation);
    match &step.access {
        Access::Scan => format!("{name}: all rows"),
        Access::Point { index, key: parts }
        | Access::Range {
            index,
            prefix: parts,
            ..
        } => {
            let columns = table.indexes[*index].algorithm.columns();
            let known = columns.iter().zip(parts);
            let mut texts: Vec<_> = known
                .map(|(column, part)| part_text(fragment, table, column.0, part))
                .collect();
            if let Some(column) = columns.get(parts.len()) {
                texts.push(format!("a range of {}", column_name(table, column.0)));
            }
            format!(
                "{name}: index {} where {}",
                table.indexes[*index].name,
                texts.join(" and ")
            )
        }
        Access::Hash { columns } => {
            let parts: Vec<_> = columns
                .iter()
                .map(|(column, _, other)| {
                    let own = column_name(table, column.0);
                    format!("{own} = {}", other_column(fragment, *other))
                })
                .collect();
            format!("{name}: hash table where {}", parts.join(" and "))
        }
    }
}

fn column_name(table: &TableSchema, column: u16) -> &str {
    let column = table.columns.get(usize::from(column));
    column.map_or("", |column| &column.name)
}

fn other_column(fragment: &Fragment, at: ColumnAt) -> String {
    let table = &fragment.tables[usize::from(at.relation)];
    format!(
        "{} #{}.{}",
        table.name,
        at.relation,
        column_name(table, at.column.0)
    )
}

fn part_text(fragment: &Fragment, table: &TableSchema, column: u16, part: &KeyPart) -> String {
    let own = column_name(table, column);
    match part {
        KeyPart::Constant(_) => format!("{own} is a constant"),
        KeyPart::Column(at) => format!("{own} = {}", other_column(fragment, *at)),
    }
}
