//! Every kind of index, every kind of scan, and changes through indexes.

use spacetimedb::sats::{i256, u256};
use spacetimedb::{
    reducer, table, ConnectionId, Identity, ReducerContext, SpacetimeType, Table, Timestamp, Uuid,
};

use crate::expect_eq;

#[derive(SpacetimeType, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    Low,
    Middle,
    High,
}

#[table(
    accessor = indexed, public,
    index(accessor = by_group_rank_name, btree(columns = [group, score, name])),
    index(accessor = by_group_name_hash, hash(columns = [group, name])),
)]
pub struct Indexed {
    #[primary_key]
    pub id: u64,
    #[unique]
    pub code: String,
    #[index(btree)]
    pub group: u32,
    #[index(btree)]
    pub score: i64,
    #[index(hash)]
    pub name: String,
}

#[table(accessor = direct_u8, public)]
pub struct DirectU8 {
    #[unique]
    #[index(direct)]
    pub id: u8,
    pub value: u32,
}

#[table(accessor = direct_u32, public)]
pub struct DirectU32 {
    #[primary_key]
    #[index(direct)]
    pub id: u32,
    pub value: u32,
}

/// A B-tree on each type that can be filtered by.
#[table(accessor = btrees, public)]
pub struct BTrees {
    #[primary_key]
    pub id: u32,
    #[index(btree)]
    pub flag: bool,
    #[index(btree)]
    pub u8_value: u8,
    #[index(btree)]
    pub u16_value: u16,
    #[index(btree)]
    pub u64_value: u64,
    #[index(btree)]
    pub u128_value: u128,
    #[index(btree)]
    pub u256_value: u256,
    #[index(btree)]
    pub i8_value: i8,
    #[index(btree)]
    pub i16_value: i16,
    #[index(btree)]
    pub i32_value: i32,
    #[index(btree)]
    pub i64_value: i64,
    #[index(btree)]
    pub i128_value: i128,
    #[index(btree)]
    pub i256_value: i256,
    #[index(btree)]
    pub text: String,
    #[index(btree)]
    pub identity: Identity,
    #[index(btree)]
    pub connection_id: ConnectionId,
    #[index(btree)]
    pub timestamp: Timestamp,
    #[index(btree)]
    pub uuid: Uuid,
    #[index(btree)]
    pub rank: Rank,
}

fn fill(ctx: &ReducerContext) {
    let table = ctx.db.indexed();
    table.clear();
    for id in 0..100u64 {
        table.insert(Indexed {
            id,
            code: format!("code-{id:03}"),
            group: (id % 4) as u32,
            score: id as i64 - 50,
            name: format!("name-{}", id % 10),
        });
    }
}

/// Point lookups, ranges, prefixes and deletes on one table with every kind of index.
#[reducer]
pub fn check_scans(ctx: &ReducerContext) -> Result<(), String> {
    fill(ctx);
    let table = ctx.db.indexed();
    expect_eq(
        "unique find",
        table.code().find("code-042".to_string()).map(|r| r.id),
        Some(42),
    )?;
    expect_eq("unique miss", table.id().find(1000).is_none(), true)?;
    expect_eq("point", table.group().filter(1u32).count(), 25)?;
    expect_eq("hash point", table.name().filter("name-3").count(), 10)?;
    expect_eq(
        "hash of two columns",
        table.by_group_name_hash().filter((3u32, "name-3")).count(),
        5,
    )?;

    let scores = |range: Vec<i64>| range;
    let read = |iter: &mut dyn Iterator<Item = Indexed>| iter.map(|r| r.score).collect::<Vec<_>>();
    expect_eq(
        "half open",
        read(&mut table.score().filter(-2i64..1)),
        scores(vec![-2, -1, 0]),
    )?;
    expect_eq(
        "closed",
        read(&mut table.score().filter(-2i64..=1)),
        scores(vec![-2, -1, 0, 1]),
    )?;
    expect_eq(
        "from",
        read(&mut table.score().filter(48i64..)),
        scores(vec![48, 49]),
    )?;
    expect_eq(
        "to",
        read(&mut table.score().filter(..-48i64)),
        scores(vec![-50, -49]),
    )?;
    expect_eq(
        "to inclusive",
        read(&mut table.score().filter(..=-48i64)),
        scores(vec![-50, -49, -48]),
    )?;
    expect_eq(
        "empty",
        read(&mut table.score().filter(10i64..10)),
        scores(vec![]),
    )?;

    let by = table.by_group_rank_name();
    expect_eq("prefix", by.filter(2u32).count(), 25)?;
    expect_eq(
        "prefix and range",
        by.filter((2u32, 0i64..))
            .map(|r| r.score)
            .collect::<Vec<_>>(),
        (0..50i64).filter(|s| (s + 50) % 4 == 2).collect(),
    )?;
    expect_eq("two of three columns", by.filter((2u32, 0i64)).count(), 1)?;
    expect_eq("all columns", by.filter((2u32, 0i64, "name-0")).count(), 1)?;
    expect_eq(
        "prefix and text range",
        by.filter((2u32, 0i64, "name".."nameZ")).count(),
        1,
    )?;

    expect_eq("delete a point", table.group().delete(0u32), 25)?;
    expect_eq("delete a range", table.score().delete(-50i64..-40), 7)?;
    expect_eq("delete by hash", table.name().delete("name-9"), 9)?;
    expect_eq("unique delete", table.id().delete(42u64), true)?;
    expect_eq("unique delete again", table.id().delete(42u64), false)?;
    expect_eq("count", table.count(), 100 - 25 - 7 - 9 - 1)?;
    expect_eq("iter", table.iter().count() as u64, table.count())
}

/// Unique constraints: an insert that breaks one fails and leaves nothing.
#[reducer]
pub fn check_unique(ctx: &ReducerContext) -> Result<(), String> {
    fill(ctx);
    let table = ctx.db.indexed();
    let row = |id: u64, code: &str| Indexed {
        id,
        code: code.into(),
        group: 0,
        score: 0,
        name: String::new(),
    };
    expect_eq(
        "same primary key",
        table.try_insert(row(1, "fresh")).is_err(),
        true,
    )?;
    expect_eq(
        "same code",
        table.try_insert(row(1000, "code-001")).is_err(),
        true,
    )?;
    expect_eq("count", table.count(), 100)?;
    let updated = table.id().update(Indexed {
        score: 1000,
        ..table.id().find(7).ok_or("no row 7")?
    });
    expect_eq("updated", updated.score, 1000)?;
    expect_eq(
        "index follows",
        table
            .score()
            .filter(1000i64)
            .map(|r| r.id)
            .collect::<Vec<_>>(),
        vec![7],
    )?;
    table.id().insert_or_update(row(7, "code-007"));
    table.id().insert_or_update(row(500, "code-500"));
    expect_eq("count after upserts", table.count(), 101)
}

/// Direct indexes: dense and sparse keys.
#[reducer]
pub fn check_direct(ctx: &ReducerContext) -> Result<(), String> {
    let (small, large) = (ctx.db.direct_u8(), ctx.db.direct_u32());
    small.clear();
    large.clear();
    for id in 0..=255u8 {
        small.insert(DirectU8 {
            id,
            value: u32::from(id) * 2,
        });
    }
    expect_eq("u8 find", small.id().find(200).map(|r| r.value), Some(400))?;
    for id in [0u32, 1, 65_536, 1_000_000] {
        large.insert(DirectU32 { id, value: id });
    }
    expect_eq(
        "u32 find",
        large.id().find(65_536).map(|r| r.value),
        Some(65_536),
    )?;
    expect_eq("u32 miss", large.id().find(65_535).is_none(), true)?;
    large.id().update(DirectU32 {
        id: 1_000_000,
        value: 3,
    });
    expect_eq(
        "u32 update",
        large.id().find(1_000_000).map(|r| r.value),
        Some(3),
    )?;
    expect_eq("u32 delete", large.id().delete(0), true)?;
    expect_eq("u32 gone", large.id().find(0).is_none(), true)
}

/// Ranges over each type that a B-tree can be keyed by.
#[reducer]
pub fn check_btrees(ctx: &ReducerContext) -> Result<(), String> {
    let table = ctx.db.btrees();
    table.clear();
    for id in 0..8u32 {
        let signed = id as i32 - 4;
        table.insert(BTrees {
            id,
            flag: id >= 4,
            u8_value: id as u8 * 30,
            u16_value: id as u16 * 300,
            u64_value: u64::from(id) << 40,
            u128_value: u128::from(id) << 100,
            u256_value: u256::from(id) << 200u32,
            i8_value: signed as i8 * 30,
            i16_value: signed as i16 * 300,
            i32_value: signed * 300_000,
            i64_value: i64::from(signed) << 40,
            i128_value: i128::from(signed) << 100,
            i256_value: i256::from(signed) << 200u32,
            text: "abcdefgh"[..id as usize].to_string(),
            identity: Identity::from_claims("coverage", &id.to_string()),
            connection_id: ConnectionId::from_u128(u128::from(id) << 64),
            timestamp: Timestamp::from_micros_since_unix_epoch(i64::from(signed)),
            uuid: Uuid::from_u128(u128::from(id) << 64),
            rank: [Rank::Low, Rank::Middle, Rank::High][id as usize % 3],
        });
    }
    macro_rules! upper_half {
        ($($column:ident: $from:expr),* $(,)?) => {
            $(expect_eq(stringify!($column), table.$column().filter($from..).count(), 4)?;)*
        };
    }
    upper_half! {
        u8_value: 120u8,
        u16_value: 1200u16,
        u64_value: 4u64 << 40,
        u128_value: 4u128 << 100,
        u256_value: u256::from(4u32) << 200u32,
        i8_value: 0i8,
        i16_value: 0i16,
        i32_value: 0i32,
        i64_value: 0i64,
        i128_value: 0i128,
        i256_value: i256::ZERO,
        text: "abcd",
        connection_id: ConnectionId::from_u128(4 << 64),
        timestamp: Timestamp::UNIX_EPOCH,
        uuid: Uuid::from_u128(4 << 64),
    }
    expect_eq("flag", table.flag().filter(true).count(), 4)?;
    expect_eq(
        "identity",
        table
            .identity()
            .filter(Identity::from_claims("coverage", "3"))
            .map(|r| r.id)
            .collect::<Vec<_>>(),
        vec![3],
    )?;
    expect_eq("rank", table.rank().filter(Rank::Middle).count(), 3)?;
    expect_eq("rank range", table.rank().filter(Rank::Middle..).count(), 5)
}

/// Many rows in one call: scans that need more than one buffer.
#[reducer]
pub fn check_large_scan(ctx: &ReducerContext, rows: u32) -> Result<(), String> {
    let table = ctx.db.direct_u32();
    table.clear();
    for id in 0..rows {
        table.insert(DirectU32 { id, value: id ^ 1 });
    }
    let sum: u64 = table.iter().map(|r| u64::from(r.id)).sum();
    expect_eq(
        "sum",
        sum,
        u64::from(rows) * u64::from(rows.saturating_sub(1)) / 2,
    )?;
    expect_eq("count", table.count(), u64::from(rows))?;
    expect_eq("clear", table.clear(), u64::from(rows))
}
