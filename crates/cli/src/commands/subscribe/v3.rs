//! Messages of the protocol v3, in binary (05 §5).

use lightcone_types::json::bsatn_to_json_named;
use lightcone_types::{Encode, Reader};
use lightcone_wire::payload::{decode_body, decode_messages, Protocol};
use lightcone_wire::{ClientMessage, QuerySetUpdate, RowList, ServerMessage, TableUpdateRows};

use super::update::{protocol_error, shape_of, Event, Side, Update};
use crate::error::Result;
use crate::schema::Schema;

pub fn subscribe(queries: &[String]) -> Vec<u8> {
    let message = ClientMessage::Subscribe {
        request_id: 0,
        query_set_id: 0,
        query_strings: queries.iter().map(String::as_str).collect(),
    };
    message.to_vec()
}

/// What one frame tells: a tag that says "uncompressed", then the messages.
pub fn events(payload: &[u8], bytes_max: usize, schema: &Schema) -> Result<Vec<Event>> {
    let body = decode_body(payload, bytes_max).map_err(protocol_error)?;
    let messages = decode_messages(Protocol::V3, &body).map_err(protocol_error)?;
    let events = messages.into_iter().map(|message| event(message, schema));
    events.filter_map(Result::transpose).collect()
}

fn event(message: ServerMessage, schema: &Schema) -> Result<Option<Event>> {
    Ok(match message {
        ServerMessage::SubscribeApplied { rows, .. } => {
            let mut update = Update::default();
            for table in &rows.tables {
                let (name, rows) = (&table.table, &table.rows);
                add(&mut update, schema, name, Side::Inserts, rows)?;
            }
            Some(Event::Applied(update))
        }
        ServerMessage::SubscriptionError { error, .. } => Some(Event::Refused(error)),
        ServerMessage::TransactionUpdate { query_sets } => {
            Some(Event::Update(update(&query_sets, schema)?))
        }
        _ => None,
    })
}

fn update(query_sets: &[QuerySetUpdate], schema: &Schema) -> Result<Update> {
    let mut update = Update::default();
    for table in query_sets.iter().flat_map(|set| &set.tables) {
        for rows in &table.rows {
            let name = &table.table_name;
            match rows {
                TableUpdateRows::Persistent { inserts, deletes } => {
                    add(&mut update, schema, name, Side::Inserts, inserts)?;
                    add(&mut update, schema, name, Side::Deletes, deletes)?;
                }
                TableUpdateRows::Event { events } => {
                    add(&mut update, schema, name, Side::Inserts, events)?;
                }
            }
        }
    }
    Ok(update)
}

fn add(
    update: &mut Update,
    schema: &Schema,
    table: &str,
    side: Side,
    rows: &RowList,
) -> Result<()> {
    let shape = shape_of(schema, table)?;
    update.table(table);
    for row in rows.iter() {
        let mut json = String::new();
        let mut row = Reader::new(row);
        bsatn_to_json_named(&shape.typespace, &shape.row, &mut row, &mut json)
            .map_err(protocol_error)?;
        update.add(table, side, json);
    }
    Ok(())
}
