//! Every column type, written and read back.

use std::time::Duration;

use spacetimedb::sats::{i256, u256};
use spacetimedb::{
    reducer, table, ConnectionId, Identity, ReducerContext, ScheduleAt, SpacetimeType, Table,
    TimeDuration, Timestamp, Uuid,
};

use crate::expect_eq;

#[derive(SpacetimeType, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Red,
    Green,
    Blue,
}

#[derive(SpacetimeType, Clone, Debug, PartialEq)]
pub enum Shape {
    Nothing,
    Circle(f64),
    Label(String),
    Polygon(Vec<Point>),
    Tagged(Tagged),
}

#[derive(SpacetimeType, Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: i32,
    pub y: i32,
}

#[derive(SpacetimeType, Clone, Debug, PartialEq)]
pub struct Tagged {
    pub color: Color,
    pub note: Option<String>,
}

#[table(accessor = every_number, public)]
#[derive(Clone, PartialEq)]
pub struct EveryNumber {
    #[primary_key]
    pub id: u32,
    pub u8_value: u8,
    pub u16_value: u16,
    pub u32_value: u32,
    pub u64_value: u64,
    pub u128_value: u128,
    pub u256_value: u256,
    pub i8_value: i8,
    pub i16_value: i16,
    pub i32_value: i32,
    pub i64_value: i64,
    pub i128_value: i128,
    pub i256_value: i256,
    pub f32_value: f32,
    pub f64_value: f64,
    pub flag: bool,
}

#[table(accessor = every_special, public)]
#[derive(Clone, PartialEq)]
pub struct EverySpecial {
    #[primary_key]
    pub id: u32,
    pub identity: Identity,
    pub connection_id: ConnectionId,
    pub timestamp: Timestamp,
    pub duration: TimeDuration,
    pub uuid: Uuid,
    pub schedule: ScheduleAt,
}

#[table(accessor = every_shape, public)]
#[derive(Clone, PartialEq)]
pub struct EveryShape {
    #[primary_key]
    pub id: u32,
    pub text: String,
    pub bytes: Vec<u8>,
    pub numbers: Vec<u16>,
    pub texts: Vec<String>,
    pub nested: Vec<Vec<Point>>,
    pub point: Point,
    pub color: Color,
    pub shape: Shape,
    pub maybe_number: Option<i64>,
    pub maybe_shape: Option<Shape>,
    pub maybe_maybe: Option<Option<u8>>,
    pub outcome: Result<u32, String>,
    pub nothing: (),
}

/// Rows that an older client or a migration would fill in.
#[table(accessor = with_defaults, public)]
pub struct WithDefaults {
    #[primary_key]
    pub id: u32,
    #[default(7)]
    pub number: i32,
    #[default(true)]
    pub flag: bool,
    #[default(Color::Green)]
    pub color: Color,
    #[default(None)]
    pub note: Option<String>,
}

/// A table without any index or key: a set of rows.
#[table(accessor = plain_set, public)]
pub struct PlainSet {
    pub left: i32,
    pub right: String,
}

/// Private: only the owner sees it.
#[table(accessor = secrets)]
pub struct Secret {
    #[primary_key]
    pub id: u32,
    pub text: String,
}

/// Rows that live for one transaction and reach the subscribers.
#[table(accessor = happenings, public, event)]
pub struct Happening {
    pub what: String,
    pub times: u32,
}

fn extremes() -> Vec<EveryNumber> {
    vec![
        EveryNumber {
            id: 0,
            u8_value: 0,
            u16_value: 0,
            u32_value: 0,
            u64_value: 0,
            u128_value: 0,
            u256_value: u256::ZERO,
            i8_value: i8::MIN,
            i16_value: i16::MIN,
            i32_value: i32::MIN,
            i64_value: i64::MIN,
            i128_value: i128::MIN,
            i256_value: i256::MIN,
            f32_value: f32::MIN,
            f64_value: f64::MIN,
            flag: false,
        },
        EveryNumber {
            id: 1,
            u8_value: u8::MAX,
            u16_value: u16::MAX,
            u32_value: u32::MAX,
            u64_value: u64::MAX,
            u128_value: u128::MAX,
            u256_value: u256::MAX,
            i8_value: i8::MAX,
            i16_value: i16::MAX,
            i32_value: i32::MAX,
            i64_value: i64::MAX,
            i128_value: i128::MAX,
            i256_value: i256::MAX,
            f32_value: f32::MAX,
            f64_value: f64::MAX,
            flag: true,
        },
    ]
}

/// Writes the extremes of every numeric type and reads them back.
#[reducer]
pub fn check_numbers(ctx: &ReducerContext) -> Result<(), String> {
    let table = ctx.db.every_number();
    for row in extremes() {
        table.id().delete(row.id);
        table.insert(row.clone());
        let read = table.id().find(row.id).ok_or("row not found")?;
        expect_eq("every_number", read == row, true)?;
    }
    expect_eq("count", table.count(), 2)
}

/// Writes every special type and reads it back.
#[reducer]
pub fn check_specials(ctx: &ReducerContext) -> Result<(), String> {
    let row = EverySpecial {
        id: 1,
        identity: ctx.sender(),
        connection_id: ctx.connection_id().unwrap_or(ConnectionId::ZERO),
        timestamp: ctx.timestamp,
        duration: TimeDuration::from_micros(-1_500_000),
        uuid: ctx.new_uuid_v7().map_err(|e| e.to_string())?,
        schedule: ScheduleAt::Interval(Duration::from_secs(3600).into()),
    };
    let table = ctx.db.every_special();
    table.id().delete(row.id);
    table.insert(row.clone());
    expect_eq(
        "every_special",
        table.id().find(1).as_ref() == Some(&row),
        true,
    )
}

/// Writes every structured type and reads it back, once small and once larger than a page.
#[reducer]
pub fn check_shapes(ctx: &ReducerContext) -> Result<(), String> {
    let table = ctx.db.every_shape();
    for (id, size) in [(1u32, 3usize), (2, 100_000), (3, 0)] {
        let row = EveryShape {
            id,
            text: "é".repeat(size),
            bytes: (0..size).map(|i| i as u8).collect(),
            numbers: (0..size.min(1000)).map(|i| i as u16).collect(),
            texts: vec!["a".into(), String::new()],
            nested: vec![vec![], vec![Point { x: 1, y: -1 }]],
            point: Point {
                x: i32::MIN,
                y: i32::MAX,
            },
            color: Color::Blue,
            shape: Shape::Tagged(Tagged {
                color: Color::Red,
                note: Some("n".into()),
            }),
            maybe_number: (size > 0).then_some(-5),
            maybe_shape: Some(Shape::Polygon(vec![Point { x: 0, y: 0 }])),
            maybe_maybe: Some(None),
            outcome: if size > 0 { Ok(9) } else { Err("none".into()) },
            nothing: (),
        };
        table.id().delete(id);
        table.insert(row.clone());
        expect_eq(
            "every_shape",
            table.id().find(id).as_ref() == Some(&row),
            true,
        )?;
    }
    expect_eq("count", table.count(), 3)
}

/// Identical rows of a table without keys are one row.
#[reducer]
pub fn check_set_semantics(ctx: &ReducerContext) -> Result<(), String> {
    let table = ctx.db.plain_set();
    table.clear();
    let row = || PlainSet {
        left: 1,
        right: "x".into(),
    };
    table.insert(row());
    table.insert(row());
    expect_eq("count after two equal inserts", table.count(), 1)?;
    expect_eq("delete", table.delete(row()), true)?;
    expect_eq("second delete", table.delete(row()), false)?;
    table.insert(row());
    table.insert(PlainSet {
        left: 2,
        right: "x".into(),
    });
    expect_eq("clear", table.clear(), 2)?;
    expect_eq("count after clear", table.count(), 0)
}

#[reducer]
pub fn add_plain(ctx: &ReducerContext, left: i32, right: String) {
    ctx.db.plain_set().insert(PlainSet { left, right });
}

#[reducer]
pub fn remove_plain(ctx: &ReducerContext, left: i32, right: String) -> Result<(), String> {
    if ctx.db.plain_set().delete(PlainSet { left, right }) {
        Ok(())
    } else {
        Err("no such row".into())
    }
}

#[reducer]
pub fn add_default(ctx: &ReducerContext, id: u32) {
    ctx.db.with_defaults().insert(WithDefaults {
        id,
        number: 7,
        flag: true,
        color: Color::Green,
        note: None,
    });
}

#[reducer]
pub fn add_secret(ctx: &ReducerContext, id: u32, text: String) {
    ctx.db.secrets().id().insert_or_update(Secret { id, text });
}

#[reducer]
pub fn announce(ctx: &ReducerContext, what: String, times: u32) {
    ctx.db.happenings().insert(Happening { what, times });
}

/// Takes every type as an argument: for the argument forms of HTTP and the command line.
#[reducer]
#[allow(clippy::too_many_arguments)]
pub fn echo_arguments(
    _ctx: &ReducerContext,
    flag: bool,
    number: i64,
    large: u128,
    text: String,
    bytes: Vec<u8>,
    point: Point,
    color: Color,
    shape: Shape,
    maybe: Option<u32>,
    identity: Identity,
    timestamp: Timestamp,
) {
    log::info!("{flag} {number} {large} {text} {bytes:?} {point:?} {color:?} {shape:?} {maybe:?} {identity} {timestamp}");
}
