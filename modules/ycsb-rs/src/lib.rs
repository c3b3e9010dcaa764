//! The table of YCSB: records of a key and ten fields. `ycsb-ts` is the same in TypeScript. Functions that return something
//! are procedures; each is one transaction.

mod by_key;

use spacetimedb::{
    procedure, reducer, table, ProcedureContext, ReducerContext, SpacetimeType, Table,
};

use by_key::BY_KEY;

#[table(accessor = usertable, public)]
#[derive(Clone)]
pub struct Usertable {
    #[primary_key]
    pub ycsb_key: String,
    pub field0: String,
    pub field1: String,
    pub field2: String,
    pub field3: String,
    pub field4: String,
    pub field5: String,
    pub field6: String,
    pub field7: String,
    pub field8: String,
    pub field9: String,
}

impl Usertable {
    fn field(&mut self, field: u8) -> Option<&mut String> {
        match field {
            0 => Some(&mut self.field0),
            1 => Some(&mut self.field1),
            2 => Some(&mut self.field2),
            3 => Some(&mut self.field3),
            4 => Some(&mut self.field4),
            5 => Some(&mut self.field5),
            6 => Some(&mut self.field6),
            7 => Some(&mut self.field7),
            8 => Some(&mut self.field8),
            9 => Some(&mut self.field9),
            _ => None,
        }
    }
}

/// What a record is loaded with.
#[derive(SpacetimeType)]
pub struct YcsbRecord {
    pub key: String,
    pub fields: Vec<String>,
}

const FIELD_COUNT: usize = 10;

fn insert(ctx: &ReducerContext, key: String, fields: Vec<String>) -> Result<(), String> {
    let fields: [String; FIELD_COUNT] = fields.try_into().map_err(|fields: Vec<String>| {
        format!("a record has {FIELD_COUNT} fields, not {}", fields.len())
    })?;
    let [field0, field1, field2, field3, field4, field5, field6, field7, field8, field9] = fields;
    let inserted = ctx.db.usertable().try_insert(Usertable {
        ycsb_key: key,
        field0,
        field1,
        field2,
        field3,
        field4,
        field5,
        field6,
        field7,
        field8,
        field9,
    });
    inserted.map(drop).map_err(|_| "exists".into())
}

fn find(ctx: &ReducerContext, key: &String) -> Option<Usertable> {
    ctx.db.usertable().ycsb_key().find(key)
}

/// Replaces one field of a record.
fn update(
    ctx: &ReducerContext,
    mut row: Usertable,
    field: u8,
    value: String,
) -> Result<(), String> {
    let Some(changed) = row.field(field) else {
        return Err(format!("there is no field {field}"));
    };
    *changed = value;
    ctx.db.usertable().ycsb_key().update(row);
    Ok(())
}

#[reducer]
pub fn ycsb_insert(ctx: &ReducerContext, key: String, fields: Vec<String>) -> Result<(), String> {
    insert(ctx, key, fields)
}

#[reducer]
pub fn ycsb_insert_many(ctx: &ReducerContext, rows: Vec<YcsbRecord>) -> Result<(), String> {
    rows.into_iter()
        .try_for_each(|row| insert(ctx, row.key, row.fields))
}

#[reducer]
pub fn ycsb_update(
    ctx: &ReducerContext,
    key: String,
    field: u8,
    value: String,
) -> Result<(), String> {
    let row = find(ctx, &key).ok_or("missing")?;
    update(ctx, row, field, value)
}

/// The record as it was, if there is one.
#[procedure]
pub fn ycsb_rmw(
    ctx: &mut ProcedureContext,
    key: String,
    field: u8,
    value: String,
) -> Option<Usertable> {
    let outcome: Result<Option<Usertable>, String> = ctx.try_with_tx(|tx| {
        let Some(row) = find(tx, &key) else {
            return Ok(None);
        };
        update(tx, row.clone(), field, value.clone())?;
        Ok(Some(row))
    });
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

#[procedure]
pub fn ycsb_read(ctx: &mut ProcedureContext, key: String) -> Option<Usertable> {
    ctx.with_tx(|tx| find(tx, &key))
}

/// Up to `count` records from a key on, ascending.
#[procedure]
pub fn ycsb_scan(ctx: &mut ProcedureContext, key: String, count: u32) -> Vec<Usertable> {
    ctx.with_tx(|_tx| {
        let from_key = BY_KEY.filter(&key..);
        from_key.take(count as usize).collect()
    })
}

#[procedure]
pub fn ycsb_count(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|tx| tx.db.usertable().count())
}

#[reducer]
pub fn ycsb_clear(ctx: &ReducerContext) {
    ctx.db.usertable().clear();
}
