//! `SpacetimeDBClient.g.cs`: the types that the SDK is generic over, made of the module's tables and functions.

use super::style::{braced, pascal, UNIT};
use super::tables::row_type;
use crate::error::Result;
use crate::module::Level;
use crate::text::Text;

pub(super) fn file(level: &Level) -> Result<Text> {
    let mut tables = Vec::new();
    for table in &level.tables {
        let row = row_type(level, table)?.to_owned();
        tables.push((pascal(&table.accessor)?, row, table.name.as_str()));
    }
    let names = level.reducers.iter().map(|r| pascal(&r.accessor));
    let reducers: Vec<String> = names.collect::<Result<_>>()?;

    let mut text = Text::new(UNIT);
    text.lines(REMOTES);
    text.blank();
    let head = "public sealed partial class RemoteTables : RemoteTablesBase";
    braced(&mut text, head, |text| {
        braced(text, "public RemoteTables(DbConnection conn)", |text| {
            for (name, ..) in &tables {
                text.line(format!("AddTable({name} = new {name}Handle(conn));"));
            }
        });
    });
    text.blank().lines(CONTEXT_INTERFACE);
    for context in &CONTEXTS {
        text.blank();
        context.write(&mut text);
    }
    text.blank().lines(SUBSCRIPTIONS);
    text.blank();
    query_builder(&mut text, &tables);
    let cases = reducers.iter().map(|name| {
        format!("            case Reducer.{name} args: return Reducers.Invoke{name}(eventContext, args);\n")
    });
    let connection = include_str!("connection.cs.txt");
    let connection = connection.replace(CASES, &cases.collect::<String>());
    text.blank().lines(&connection);
    Ok(text)
}

/// For the cases of all reducers.
const CASES: &str = "            /* cases */\n";

const REMOTES: &str = include_str!("remotes.cs.txt");
const CONTEXT_INTERFACE: &str = include_str!("context.cs.txt");
const SUBSCRIPTIONS: &str = include_str!("subscriptions.cs.txt");

/// The context of callbacks: the connection and the event.
struct ContextClass {
    name: &'static str,
    /// None without an event.
    event: Option<&'static str>,
}

const CONTEXTS: [ContextClass; 5] = [
    ContextClass {
        name: "EventContext",
        event: Some("Event<Reducer>"),
    },
    ContextClass {
        name: "ReducerEventContext",
        event: Some("ReducerEvent<Reducer>"),
    },
    ContextClass {
        name: "ErrorContext",
        event: Some("Exception"),
    },
    ContextClass {
        name: "SubscriptionEventContext",
        event: None,
    },
    ContextClass {
        name: "ProcedureEventContext",
        event: Some("ProcedureEvent"),
    },
];

impl ContextClass {
    fn write(&self, text: &mut Text) {
        let name = self.name;
        let head = format!("public sealed class {name} : I{name}, IRemoteDbContext");
        braced(text, &head, |text| {
            text.line("private readonly DbConnection conn;");
            if let Some(event) = self.event {
                text.line("/// <summary>What the callback is about.</summary>");
                text.line(format!("public readonly {event} Event;"));
                // The interface of errors has it too.
                if name == "ErrorContext" {
                    text.line("Exception IErrorContext.Event => Event;");
                }
            }
            text.blank();
            let parameter = self.event.map(|event| format!(", {event} happened"));
            let head = format!(
                "internal {name}(DbConnection conn{})",
                parameter.unwrap_or_default()
            );
            braced(text, &head, |text| {
                text.line("this.conn = conn;");
                if self.event.is_some() {
                    text.line("Event = happened;");
                }
            });
            text.blank().lines(CONTEXT_MEMBERS);
        });
    }
}

const CONTEXT_MEMBERS: &str = include_str!("context_members.cs.txt");

/// The tables as sources of typed queries: accessor, row type, name.
fn query_builder(text: &mut Text, tables: &[(String, String, &str)]) {
    braced(text, "public sealed class QueryBuilder", |text| {
        text.line("public From From { get; } = new From();").blank();
        text.line("internal static string[] AllTablesSqlQueries() => new string[]");
        text.block("{", "};", |text| {
            for (name, ..) in tables {
                text.line(format!("new QueryBuilder().From.{name}().ToSql(),"));
            }
        });
    });
    text.blank();
    braced(text, "public sealed class From", |text| {
        for (name, row, wire_name) in tables {
            let ty = format!("global::SpacetimeDB.Table<{row}, {name}Cols, {name}IxCols>");
            text.line(format!(
                "public {ty} {name}() => new {ty}(\"{wire_name}\", new {name}Cols(\"{wire_name}\"), new {name}IxCols(\"{wire_name}\"));"
            ));
        }
    });
}
