//! Agreement with the published crate `spacetimedb-lib`, whose encodings define the format.

use crate::{common, module_def};
use lightcone_schema::raw::{RawModuleDef, RawModuleDefV10, RawModuleDefV9};
use lightcone_schema::{IndexAlgorithm, ModuleDef, RawVersion, Visibility};
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{AlgebraicType, ColId, Typespace};
use proptest::prelude::*;
use spacetimedb_lib::db::raw_def::{v10, v9};
use spacetimedb_lib::sats;

/// The reference's own description of its raw definition as a type, so that random definitions can be
/// made from the description instead of by hand.
fn described<T: spacetimedb_sats::SpacetimeType>() -> (Typespace, AlgebraicType) {
    let mut builder = v9::RawModuleDefV9Builder::new();
    let ty = builder.add_type::<T>();
    let typespace = sats::bsatn::to_vec(builder.typespace()).unwrap();
    let ty = sats::bsatn::to_vec(&ty).unwrap();
    (
        Typespace::from_slice(&typespace).unwrap(),
        AlgebraicType::from_slice(&ty).unwrap(),
    )
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    /// Appends the BSATN of a random value of the type.
    fn value(
        &mut self,
        typespace: &Typespace,
        ty: &AlgebraicType,
        depth: usize,
        out: &mut Vec<u8>,
    ) {
        match *typespace.follow(ty).unwrap() {
            AlgebraicType::Sum(ref sum) => {
                let last = sum.variants.len() - 1;
                // The last variant of every sum here leads to an end.
                let tag = if depth > 14 {
                    last
                } else {
                    self.below(last + 1)
                };
                out.push(tag as u8);
                self.value(typespace, &sum.variants[tag].algebraic_type, depth + 1, out);
            }
            AlgebraicType::Product(ref product) => {
                for element in &product.elements {
                    self.value(typespace, &element.algebraic_type, depth + 1, out);
                }
            }
            AlgebraicType::Array(ref element) => {
                let count = if depth > 14 { 0 } else { self.below(4) };
                out.extend((count as u32).to_le_bytes());
                for _ in 0..count {
                    self.value(typespace, element, depth + 1, out);
                }
            }
            AlgebraicType::String => {
                let choices = [
                    "",
                    "a",
                    "id",
                    "fooBar",
                    "st_x",
                    "\"\\\n\u{1}",
                    "é用",
                    "some",
                ];
                choices[self.below(choices.len())].to_owned().encode(out);
            }
            AlgebraicType::Bool => out.push(self.below(2) as u8),
            AlgebraicType::U8 => out.push(self.below(256) as u8),
            AlgebraicType::U16 => out.extend((self.below(5) as u16).to_le_bytes()),
            AlgebraicType::U32 => out.extend((self.below(5) as u32).to_le_bytes()),
            AlgebraicType::I128 => {
                let choices = [0, 1, -1, i128::MAX, i128::MIN, 1 << 100];
                out.extend(choices[self.below(choices.len())].to_le_bytes());
            }
            ref other => panic!("unexpected type in a definition: {other}"),
        }
    }
}

fn their_json<T: sats::ser::Serialize>(value: &T) -> String {
    let mut out = Vec::new();
    sats::ser::serde::serialize_to(value, &mut serde_json::Serializer::new(&mut out)).unwrap();
    String::from_utf8(out).unwrap()
}

fn agree<Ours, Theirs>(bytes: &[u8], version: RawVersion, wrap: impl Fn(Ours) -> RawModuleDef)
where
    Ours: Encode + Decode + PartialEq + std::fmt::Debug,
    Theirs: for<'de> sats::de::Deserialize<'de> + sats::ser::Serialize,
{
    let ours = Ours::from_slice(bytes).unwrap();
    assert_eq!(ours.to_vec(), bytes);
    let theirs: Theirs = sats::bsatn::from_slice(bytes).unwrap();
    assert_eq!(sats::bsatn::to_vec(&theirs).unwrap(), bytes);
    let ours = wrap(ours);
    let json = ours.to_schema_json();
    assert_eq!(json, their_json(&theirs));
    assert_eq!(
        RawModuleDef::from_schema_json(version, &json),
        Ok(ours.clone())
    );
    module_def::fuzz_module_def(&ours.to_vec());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_version_10(seed in 1u64..) {
        let (typespace, ty) = described::<v10::RawModuleDefV10>();
        let mut bytes = Vec::new();
        Random(seed).value(&typespace, &ty, 0, &mut bytes);
        agree::<RawModuleDefV10, v10::RawModuleDefV10>(&bytes, RawVersion::V10, RawModuleDef::V10);
    }

    #[test]
    fn random_version_9(seed in 1u64..) {
        let (typespace, ty) = described::<v9::RawModuleDefV9>();
        let mut bytes = Vec::new();
        Random(seed).value(&typespace, &ty, 0, &mut bytes);
        agree::<RawModuleDefV9, v9::RawModuleDefV9>(&bytes, RawVersion::V9, RawModuleDef::V9);
    }

    /// A definition with some bytes changed, cut or added is refused or understood, nothing else.
    #[test]
    fn mutated(seed in 1u64.., changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..4), cut in any::<u16>()) {
        let (typespace, ty) = described::<v10::RawModuleDefV10>();
        let mut bytes = vec![2];
        Random(seed).value(&typespace, &ty, 0, &mut bytes);
        for (at, byte) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        module_def::fuzz_module_def(&bytes);
        bytes.truncate(usize::from(cut) % bytes.len());
        module_def::fuzz_module_def(&bytes);
    }
}

fn sats_product(fields: &[(&'static str, sats::AlgebraicType)]) -> sats::ProductType {
    fields.iter().cloned().collect()
}

fn schedule_at() -> sats::AlgebraicType {
    let bytes = AlgebraicType::schedule_at().to_vec();
    sats::bsatn::from_slice(&bytes).unwrap()
}

#[test]
fn built_version_10() {
    let mut builder = v10::RawModuleDefV10Builder::new();
    let row = builder
        .build_table_with_new_type(
            "playerScores",
            sats_product(&[
                ("playerId", sats::AlgebraicType::U64),
                ("userIDs", sats::AlgebraicType::String),
                ("at", schedule_at()),
            ]),
            true,
        )
        .with_auto_inc_primary_key(0)
        .with_index(v9::btree(0), "playerScores_playerId_idx_btree", "playerId")
        .with_index(
            v9::hash([1, 0]),
            "playerScores_userIDs_playerId_idx_hash",
            "byUser",
        )
        .with_default_column_value(1, "x".into())
        .with_access(v9::TableAccess::Private)
        .finish();
    let row = sats::AlgebraicType::Ref(row);
    builder.add_reducer("runIt", sats_product(&[("theRow", row.clone())]));
    builder.add_lifecycle_reducer(v9::Lifecycle::OnConnect, "hello", sats::ProductType::unit());
    builder.add_schedule("playerScores", 2, "runIt");
    builder.add_procedure(
        "doAll",
        sats::ProductType::unit(),
        sats::AlgebraicType::option(row.clone()),
    );
    builder.add_view(
        "allScores",
        0,
        true,
        true,
        sats::ProductType::unit(),
        sats::AlgebraicType::array(row),
    );
    builder.add_view_primary_key("allScores", ["playerId"]);
    builder.add_row_level_security("SELECT * FROM player_scores");
    builder.add_http_handler("onPing");
    builder.add_http_route("onPing", v10::MethodOrAny::Any, "/ping");
    let mut names = v10::ExplicitNames::default();
    names.insert_function("doAll", "everything");
    names.insert_index("playerScores_userIDs_playerId_idx_hash", "by_user");
    builder.add_explicit_names(names);
    let theirs = spacetimedb_lib::RawModuleDef::V10(builder.finish());
    let bytes = sats::bsatn::to_vec(&theirs).unwrap();

    let def = ModuleDef::from_bsatn(&bytes).unwrap();
    let table = def.table("player_scores").unwrap();
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(columns, ["player_id", "user_i_ds", "at"]);
    assert_eq!(table.columns[1].default, Some("x".to_owned().to_vec()));
    let indexes: Vec<&str> = table.indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(indexes, ["player_scores_player_id_idx_btree", "by_user"]);
    assert_eq!(
        table.indexes[1].algorithm,
        IndexAlgorithm::Hash(vec![ColId(1), ColId(0)])
    );
    assert_eq!(table.constraints[0].name, "player_scores_player_id_key");
    assert_eq!(table.schedule.as_ref().unwrap().function_name, "run_it");
    assert_eq!(
        def.reducer("run_it").unwrap().1.visibility,
        Visibility::Private
    );
    assert_eq!(def.on_connect, def.reducer("hello").map(|(id, _)| id));
    assert!(def.procedure("everything").is_some() && def.procedure("do_all").is_none());
    assert_eq!(def.view("all_scores").unwrap().primary_key, Some(ColId(0)));
    assert_eq!(def.http_handlers[0].name, "on_ping");

    // Their reader takes our schema answer, in both versions.
    let v10_json = def.schema_json(RawVersion::V10);
    let mut reader = serde_json::Deserializer::from_str(&v10_json);
    let read: v10::RawModuleDefV10 = sats::de::serde::deserialize_from(&mut reader).unwrap();
    assert_eq!(
        sats::bsatn::to_vec(&read).unwrap(),
        def.to_raw_v10().to_vec()
    );
    let v9_json = def.schema_json(RawVersion::V9);
    let mut reader = serde_json::Deserializer::from_str(&v9_json);
    let read: v9::RawModuleDefV9 = sats::de::serde::deserialize_from(&mut reader).unwrap();
    assert_eq!(
        sats::bsatn::to_vec(&read).unwrap(),
        def.to_raw_v9().to_vec()
    );
    assert!(ModuleDef::validate(RawModuleDef::V9(def.to_raw_v9())).is_ok());
}

#[test]
fn built_version_9() {
    let mut builder = v9::RawModuleDefV9Builder::new();
    builder
        .build_table_with_new_type(
            "Person",
            sats_product(&[
                ("Id", sats::AlgebraicType::U32),
                ("Name", sats::AlgebraicType::String),
            ]),
            true,
        )
        .with_auto_inc_primary_key(0)
        .with_index(v9::btree(0), "Id")
        .with_index_no_accessor_name(v9::direct(0))
        .finish();
    builder.add_reducer(
        "Start",
        sats::ProductType::unit(),
        Some(v9::Lifecycle::Init),
    );
    let theirs = spacetimedb_lib::RawModuleDef::V9(builder.finish());
    let def = ModuleDef::from_bsatn(&sats::bsatn::to_vec(&theirs).unwrap()).unwrap();
    let table = def.table("Person").unwrap();
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(columns, ["Id", "Name"], "version 9 names are not converted");
    let indexes: Vec<&str> = table.indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(indexes, ["Person_Id_idx_btree", "Person_Id_idx_direct"]);
    assert_eq!(def.init, Some(0));
    let again = ModuleDef::validate(RawModuleDef::V10(def.to_raw_v10())).unwrap();
    common::assert_same_schema(&def, &again);
}
