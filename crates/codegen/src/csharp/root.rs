//! `SpacetimeDBClient.g.cs`: the types that the SDK is generic over, made of the module's tables and functions.

use super::style::{pascal, UNIT};
use crate::error::Result;
use crate::module::Level;
use crate::text::{filled, joined, Text};

pub(super) fn file(level: &Level) -> Result<Text> {
    let mut tables = Vec::new();
    for table in &level.tables {
        let row = level.row_type(table)?;
        tables.push((pascal(&table.accessor)?, row, table.name.as_str()));
    }
    let names = level.reducers.iter().map(|r| pascal(&r.accessor));
    let reducers: Vec<String> = names.collect::<Result<_>>()?;
    let of_tables = |line: &dyn Fn(&str, &str, &str) -> String| {
        let lines = tables.iter();
        joined(lines.map(|(name, row, wire_name)| line(name, row, wire_name)))
    };
    let read_without_arguments = tables.iter().zip(&level.tables);
    let read_without_arguments = read_without_arguments.filter(|(_, table)| !table.takes_arguments);
    let queries = read_without_arguments
        .map(|((name, ..), _)| format!("new QueryBuilder().From.{name}().ToSql(),"));
    let cases = reducers.iter().map(|name| {
        format!("case Reducer.{name} args: return Reducers.Invoke{name}(eventContext, args);")
    });

    let mut text = Text::new(UNIT);
    text.template(
        include_str!("client.cs.txt"),
        &[
            ("tables", &of_tables(&|name, _, _| format!("AddTable({name} = new {name}Handle(conn));"))),
            ("contexts", &CONTEXTS.map(context).concat()),
            ("queries", &joined(queries)),
            (
                "sources",
                &of_tables(&|name, row, wire_name| {
                    let ty = format!("global::SpacetimeDB.Table<{row}, {name}Cols, {name}IxCols>");
                    format!("public {ty} {name}() => new {ty}(\"{wire_name}\", new {name}Cols(\"{wire_name}\"), new {name}IxCols(\"{wire_name}\"));")
                }),
            ),
            ("cases", &joined(cases)),
        ],
    );
    Ok(text)
}

/// The classes of the contexts of callbacks, with the type of their field `Event` if they have one.
const CONTEXTS: [(&str, Option<&str>); 5] = [
    ("EventContext", Some("Event<Reducer>")),
    ("ReducerEventContext", Some("ReducerEvent<Reducer>")),
    ("ErrorContext", Some("Exception")),
    ("SubscriptionEventContext", None),
    ("ProcedureEventContext", Some("ProcedureEvent")),
];

fn context((name, event): (&str, Option<&str>)) -> String {
    let mut field = String::new();
    let (mut parameter, mut assignment) = (String::new(), "");
    if let Some(event) = event {
        field = format!(
            "/// <summary>What the callback is about.</summary>\npublic readonly {event} Event;\n"
        );
        parameter = format!(", {event} happened");
        assignment = "Event = happened;";
    }
    // The interface of errors has it too.
    if name == "ErrorContext" {
        field += "Exception IErrorContext.Event => Event;";
    }
    filled(
        include_str!("context.cs.txt"),
        &[
            ("name", name),
            ("event", &field),
            ("parameter", &parameter),
            ("assignment", assignment),
        ],
    )
}
