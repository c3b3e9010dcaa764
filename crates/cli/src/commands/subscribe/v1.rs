//! Messages of the protocol v1, in JSON (05 §14): what servers speak that do not know v3.

use lightcone_types::json::{parse, write_string, Node};
use lightcone_types::AlgebraicType;

use super::update::{protocol_error, shape_of, Event, Side, Update};
use crate::error::Result;
use crate::json_text::compact;
use crate::schema::{Rows, Schema};

pub fn subscribe(queries: &[String]) -> String {
    let queries = serde_json::json!(queries);
    format!(r#"{{"Subscribe":{{"query_strings":{queries},"request_id":0}}}}"#)
}

/// What one message tells, if it is about the subscription.
pub fn event(text: &str, schema: &Schema) -> Result<Option<Event>> {
    let message = parse(text).map_err(protocol_error)?;
    let Some([(variant, content)]) = message.as_object() else {
        return Err(protocol_error(
            "a message is not one variant with its value",
        ));
    };
    Ok(match variant.as_ref() {
        "InitialSubscription" => {
            let rows = member(content, "database_update")?;
            Some(Event::Applied(update(rows, schema)?))
        }
        "SubscriptionError" => {
            let error = member(content, "error")?.as_str().unwrap_or_default();
            Some(Event::Refused(error.to_owned()))
        }
        "TransactionUpdateLight" => some(update(member(content, "update")?, schema)?),
        "TransactionUpdate" => match member(content, "status")?.get("Committed") {
            Some(rows) => some(update(rows, schema)?),
            None => None,
        },
        _ => None,
    })
}

/// The transactions of others come without rows too.
fn some(update: Update) -> Option<Event> {
    (!update.is_empty()).then_some(Event::Update(update))
}

fn update(node: &Node<'_>, schema: &Schema) -> Result<Update> {
    let mut update = Update::default();
    for table in list(node, "tables")? {
        let name = text(member(table, "table_name")?)?;
        let shape = shape_of(schema, name)?;
        for query in list(table, "updates")? {
            for (key, side) in [("deletes", Side::Deletes), ("inserts", Side::Inserts)] {
                for row in list(query, key)? {
                    update.add(name, side, named(text(row)?, shape)?);
                }
            }
        }
    }
    Ok(update)
}

/// A row's JSON text with the names of its columns: rows of views come without them.
fn named(row: &str, shape: &Rows) -> Result<String> {
    let row = parse(row).map_err(protocol_error)?;
    let Some(values) = row.as_array() else {
        return Ok(compact(&row));
    };
    let columns = match shape.typespace.resolve(&shape.row) {
        Ok(AlgebraicType::Product(product)) => product.elements,
        _ => return Ok(compact(&row)),
    };
    let members = columns.iter().zip(values).enumerate();
    let members = members.map(|(index, (column, value))| {
        let mut member = String::new();
        write_string(column.name().unwrap_or(&index.to_string()), &mut member);
        format!("{member}:{}", compact(value))
    });
    Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
}

fn member<'n, 'a>(node: &'n Node<'a>, key: &str) -> Result<&'n Node<'a>> {
    node.get(key)
        .ok_or_else(|| protocol_error(format!("a message lacks the member `{key}`")))
}

fn list<'n, 'a>(node: &'n Node<'a>, key: &str) -> Result<&'n [Node<'a>]> {
    member(node, key)?
        .as_array()
        .ok_or_else(|| protocol_error(format!("the member `{key}` is not an array")))
}

fn text<'n>(node: &'n Node<'_>) -> Result<&'n str> {
    node.as_str()
        .ok_or_else(|| protocol_error("something other than a text where a text belongs"))
}

#[cfg(test)]
mod tests {
    use lightcone_schema::raw::RawVersion;

    use super::*;

    const SCHEMA: &str = r#"{"sections":[
 {"Typespace":{"types":[
   {"Product":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U256":[]}},{"name":{"some":"name"},"algebraic_type":{"String":[]}}]}}]}},
 {"Tables":[{"source_name":"person","product_type_ref":0,"primary_key":[0],"indexes":[],"constraints":[],"sequences":[],
   "table_type":{"User":[]},"table_access":{"Public":[]},"default_values":[],"is_event":false}]},
 {"ExplicitNames":{"entries":[]}}]}"#;

    fn tell(text: &str) -> Result<Option<Event>> {
        let schema = Schema::parse(RawVersion::V10, SCHEMA.into()).expect("a schema");
        event(text, &schema)
    }

    fn line(text: &str) -> String {
        match tell(text).expect("a message") {
            Some(Event::Applied(update)) => format!("applied {}", update.json()),
            Some(Event::Update(update)) => update.json(),
            Some(Event::Refused(error)) => format!("refused {error}"),
            None => String::new(),
        }
    }

    #[test]
    fn messages_of_the_chapter() {
        let big = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        let rows = |inserts: &str, deletes: &str| {
            format!(
                r#"{{"tables":[{{"table_id":1,"table_name":"person","num_rows":1,"updates":[{{"deletes":[{deletes}],"inserts":[{inserts}]}}]}}]}}"#
            )
        };
        let row = format!(r#""{{\"id\": {big},\n \"name\":\"a\"}}""#);
        let applied = format!(
            r#"{{"InitialSubscription":{{"database_update":{},"request_id":0}}}}"#,
            rows(&row, "")
        );
        assert_eq!(
            line(&applied),
            format!(
                r#"applied {{"person":{{"deletes":[],"inserts":[{{"id":{big},"name":"a"}}]}}}}"#
            )
        );
        let array = r#""[7,\"b\"]""#;
        let light = format!(
            r#"{{"TransactionUpdateLight":{{"request_id":0,"update":{}}}}}"#,
            rows("", array)
        );
        let want = r#"{"person":{"deletes":[{"id":7,"name":"b"}],"inserts":[]}}"#;
        assert_eq!(line(&light), want, "rows of views have no names");
        let full = format!(
            r#"{{"TransactionUpdate":{{"status":{{"Committed":{}}}}}}}"#,
            rows("", array)
        );
        assert_eq!(line(&full), want);
        for nothing in [
            r#"{"TransactionUpdate":{"status":{"Committed":{"tables":[]}}}}"#,
            r#"{"TransactionUpdate":{"status":{"Failed":"no"}}}"#,
            r#"{"IdentityToken":{"token":"x"}}"#,
        ] {
            assert_eq!(line(nothing), "");
        }
        assert_eq!(
            line(r#"{"SubscriptionError":{"request_id":{"none":[]},"error":"no such table"}}"#),
            "refused no such table"
        );
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"TransactionUpdateLight":{}}"#,
            r#"{"TransactionUpdateLight":{"update":{"tables":[{"table_name":"unknown","updates":[]}]}}}"#,
            r#"{"TransactionUpdateLight":{"update":{"tables":[{"table_name":"person","updates":[{"deletes":[1],"inserts":[]}]}]}}}"#,
        ] {
            let error = tell(text).expect_err(text).to_string();
            assert!(error.contains("[LC0623]"), "{error}");
        }
    }

    #[test]
    fn queries_are_quoted() {
        let queries = ["SELECT \"a\"".to_owned(), "b".to_owned()];
        assert_eq!(
            subscribe(&queries),
            r#"{"Subscribe":{"query_strings":["SELECT \"a\"","b"],"request_id":0}}"#
        );
    }
}
