//! Every vector of 02 §16 that concerns this crate: decode, encode to the same bytes, derive.

use crate::common::from_hex;
use crate::{common, module_def};
use lightcone_schema::raw::*;
use lightcone_schema::*;
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{
    view_args_hash, AlgebraicType, AlgebraicValue, ColId, Hash, Identity, TableId, TypeRef,
};
use lightcone_vectors::{each, named, sections_are, Entry};
use serde_json::Value;

const DEFINITIONS: &str = "02-definitions.json";
const PIECES: &str = "02-pieces.json";

/// The definition of a name in the file.
fn load(name: &str) -> (RawModuleDef, ModuleDef) {
    load_bytes(named(DEFINITIONS, "", name).hex())
}

fn load_bytes(bytes: Vec<u8>) -> (RawModuleDef, ModuleDef) {
    let raw = RawModuleDef::from_slice(&bytes).unwrap();
    assert_eq!(raw.to_vec(), bytes, "encoding must give the vector's bytes");
    let mut trailing = bytes.clone();
    trailing.extend([1, 2, 3]);
    assert_eq!(
        RawModuleDef::from_slice(&trailing).as_ref(),
        Ok(&raw),
        "trailing bytes are ignored"
    );
    for cut in 0..bytes.len() {
        assert!(RawModuleDef::from_slice(&bytes[..cut]).is_err());
    }
    assert_eq!(
        RawModuleDef::from_json(&raw.to_json_string()).as_ref(),
        Ok(&raw)
    );
    module_def::fuzz_module_def(&bytes);
    let def = ModuleDef::validate(raw.clone()).unwrap();
    (raw, def)
}

/// The same JSON, whatever the order of members and the white space.
fn same_json(ours: &str, expected: &Value) {
    assert_eq!(&serde_json::from_str::<Value>(ours).unwrap(), expected);
}

#[test]
fn definitions() {
    each(DEFINITIONS, "", |entry| {
        assert_eq!(entry.text("type"), "RawModuleDef");
        let bytes = entry.hex();
        assert_eq!(bytes.len() as i64, entry.number("bytes"));
        if entry.0["value"].get("V8BackCompat").is_some() {
            return refused_version_8(&bytes);
        }
        let (raw, _) = load_bytes(bytes.clone());
        same_json(&raw.to_json_string(), &entry.0["value"]);
        let read = RawModuleDef::from_json(&entry.0["value"].to_string());
        assert_eq!(read.as_ref(), Ok(&raw));
        if entry.0.get("sections").is_some() {
            check_sections(&raw, &bytes, entry.list("sections"));
        }
    });
}

/// The sections one by one are the definition behind its envelope.
fn check_sections(raw: &RawModuleDef, definition: &[u8], sections: &[Value]) {
    let RawModuleDef::V10(def) = raw else {
        panic!("version 9 has no sections")
    };
    let mut joined = vec![2];
    (sections.len() as u32).encode(&mut joined);
    assert_eq!(def.sections.len(), sections.len());
    for (section, expected) in def.sections.iter().zip(sections) {
        assert_eq!(section.name(), expected["section"]);
        let bytes = from_hex(expected["hex"].as_str().unwrap());
        assert_eq!(section.tag(), bytes[0], "{}", section.name());
        joined.extend(bytes);
    }
    assert_eq!(joined, definition);
}

#[test]
fn empty() {
    let (_, def) = load("empty");
    assert!(def.tables.is_empty() && def.reducers.is_empty());
    assert_eq!(
        def.schema_json(RawVersion::V10),
        r#"{"sections":[{"CaseConversionPolicy":{"None":[]}},{"Typespace":{"types":[]}},{"ExplicitNames":{"entries":[]}}]}"#
    );
}

#[test]
fn minimal() {
    let (_, def) = load("minimal");
    let table = def.table("person").unwrap();
    let names: Vec<&str> = table.indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["person_id_idx_btree", "person_name_idx_btree"]);
    assert!(table.indexes[0].unique && !table.indexes[1].unique);
    assert_eq!(table.constraints[0].name, "person_id_key");
    assert_eq!(table.sequences[0].name, "person_id_seq");
    assert_eq!(def.reducer("add").unwrap().0, 0);
    let schema = table.to_schema(&mut SequentialIds::default());
    assert_eq!(schema.id, TableId(4096));
    assert_eq!(
        (schema.sequences[0].start, schema.sequences[0].max_value),
        (1, i128::MAX)
    );

    // The order of indexes is unspecified; ours is the definition's.
    let normalised = |mut json: Value| {
        for table in json["sections"][3]["Tables"].as_array_mut().unwrap() {
            table["indexes"]
                .as_array_mut()
                .unwrap()
                .sort_by_key(|i| i["source_name"].to_string());
        }
        json.to_string()
    };
    each("02-schema-json.json", "", |entry| {
        assert_eq!(entry.number("version"), 10);
        let (_, def) = load(entry.text("definition"));
        let ours = serde_json::from_str(&def.schema_json(RawVersion::V10)).unwrap();
        assert_eq!(normalised(ours), normalised(entry.0["json"].clone()));
    });
}

#[test]
fn feature() {
    let (_, def) = load("feature");
    let names: Vec<&str> = def.tables.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["chat_event", "players", "tick"]);
    let mut ids = SequentialIds::default();
    let schemas: Vec<TableSchema> = def.tables.iter().map(|t| t.to_schema(&mut ids)).collect();
    let mut views: Vec<&ViewDef> = def.views.iter().collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    let views: Vec<TableSchema> = views
        .iter()
        .map(|v| v.to_backing_schema(true, &mut ids))
        .collect();
    let of = |schemas: &[TableSchema]| {
        schemas
            .iter()
            .map(|s| (s.name.clone(), s.id.0))
            .collect::<Vec<_>>()
    };
    let expected = [("chat_event", 4096), ("players", 4097), ("tick", 4098)];
    assert_eq!(of(&schemas), expected.map(|(n, i)| (n.to_owned(), i)));
    assert_eq!(
        of(&views),
        [("leaders", 4099), ("my_player", 4100)].map(|(n, i)| (n.to_owned(), i))
    );
    let view_indexes: Vec<&str> = views[0].indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(
        view_indexes,
        [
            "leaders_arg_hash_idx_btree",
            "leaders_arg_hash_player_id_idx_btree"
        ]
    );

    let players = def.table("players").unwrap();
    assert_eq!(
        (players.source_name.as_str(), players.access),
        ("player", TableAccess::Public)
    );
    let columns: Vec<(&str, &str)> = players
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.source_name.as_str()))
        .collect();
    assert_eq!(
        columns,
        [
            ("player_id", "playerId"),
            ("slot", "slot"),
            ("tag", "tag"),
            ("color", "color"),
            ("level", "level"),
            ("nick", "nick")
        ]
    );
    assert_eq!(players.columns[0].ty, AlgebraicType::U32);
    let color = AlgebraicType::sum([
        ("redApple", AlgebraicType::unit()),
        ("custom", AlgebraicType::U32),
    ]);
    assert_eq!(players.columns[3].ty, color);
    assert_eq!(players.columns[4].default.as_deref(), Some(&[7, 0][..]));
    assert_eq!(players.columns[5].default.as_deref(), Some(&[1][..]));
    assert_eq!(players.primary_key, Some(ColId(0)));
    let indexes: Vec<(&str, &str, bool)> = players
        .indexes
        .iter()
        .map(|i| (i.name.as_str(), i.source_name.as_str(), i.unique))
        .collect();
    assert_eq!(
        indexes,
        [
            (
                "players_player_id_idx_btree",
                "player_playerId_idx_btree",
                true
            ),
            ("players_slot_idx_direct", "player_slot_idx_direct", true),
            ("players_tag_idx_hash", "player_tag_idx_hash", false),
            ("tag_slot", "player_tag_slot_idx_btree", false),
        ]
    );
    assert_eq!(
        players.indexes[3].algorithm,
        IndexAlgorithm::BTree(vec![ColId(2), ColId(1)])
    );
    assert_eq!(
        players.indexes[3].accessor_name.as_deref(),
        Some("byTagColor")
    );
    let constraints: Vec<&str> = players
        .constraints
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(constraints, ["players_player_id_key", "players_slot_key"]);
    assert_eq!(players.sequences[0].name, "players_player_id_seq");

    let tick = def.table("tick").unwrap();
    assert_eq!(tick.access, TableAccess::Private);
    assert!(
        tick.columns[1].ty.is_schedule_at(),
        "variant names of special types stay"
    );
    let schedule = tick.schedule.as_ref().unwrap();
    assert_eq!(
        (schedule.name.as_str(), schedule.function_name.as_str()),
        ("tick_sched", "run_tick")
    );
    assert_eq!(schedule.function_kind, ScheduledFunctionKind::Reducer);

    let chat = def.table("chat_event").unwrap();
    assert!(chat.is_event && chat.access == TableAccess::Public && chat.source_name == "chatEvent");

    let reducers: Vec<(&str, Option<Lifecycle>, Visibility)> = def
        .reducers
        .iter()
        .map(|r| (r.name.as_str(), r.lifecycle, r.visibility))
        .collect();
    let private = Visibility::Private;
    assert_eq!(
        reducers,
        [
            ("run_tick", None, private),
            ("init", Some(Lifecycle::Init), private),
            ("hello", Some(Lifecycle::OnConnect), private),
            ("goodbye", Some(Lifecycle::OnDisconnect), private),
        ]
    );
    assert_eq!(
        (def.init, def.on_connect, def.on_disconnect),
        (Some(1), Some(2), Some(3))
    );
    let (id, compute) = def.procedure("compute").unwrap();
    assert_eq!((id, compute.params.to_string().as_str()), (0, "(x: I32)"));
    assert_eq!(compute.return_type, AlgebraicType::String);
    for (name, is_anonymous) in [("my_player", false), ("leaders", true)] {
        let view = def.view(name).unwrap();
        assert_eq!(
            (view.id, view.is_anonymous, view.primary_key),
            (0, is_anonymous, Some(ColId(0)))
        );
    }
    assert_eq!(def.http_handlers[0].name, "ping");
    let routes: Vec<(&MethodOrAny, &str)> = def
        .http_routes
        .iter()
        .map(|r| (&r.method, r.path.as_str()))
        .collect();
    assert_eq!(
        routes,
        [
            (&MethodOrAny::Method(HttpMethod::Get), "/ping"),
            (&MethodOrAny::Any, "/any")
        ]
    );
    assert_eq!(def.row_level_security, ["SELECT * FROM players"]);
    // Stored view columns keep their refs.
    assert_eq!(
        def.typespace
            .get(TypeRef(0))
            .unwrap()
            .as_product()
            .unwrap()
            .elements[3]
            .algebraic_type
            .to_vec(),
        from_hex("0001000000")
    );

    // What the schema endpoint shows validates to the same module again.
    let shown =
        RawModuleDef::from_schema_json(RawVersion::V10, &def.schema_json(RawVersion::V10)).unwrap();
    let again = ModuleDef::validate(shown).unwrap();
    let mut expected = def.tables.clone();
    for table in &mut expected {
        for column in &mut table.columns {
            column.source_name.clone_from(&column.name);
        }
        for index in &mut table.indexes {
            if index.name == "tag_slot" {
                // Explicit index names are not shown.
                index.name = "players_tag_slot_idx_btree".into();
            }
        }
    }
    assert_eq!(again.tables, expected);
    assert_eq!(
        again.reducer("goodbye").unwrap().1.lifecycle,
        Some(Lifecycle::OnDisconnect)
    );
}

#[test]
fn submodule_and_policy_none() {
    use RawModuleDefV10Section as S;
    let mut build = common::Build::default();
    build.table("user", &[("id", AlgebraicType::U32)]);
    let mut raw = build.raw();
    let section = |name| read_section(&named(PIECES, "sections", name));
    raw.sections.retain(|s| !matches!(s, S::Reducers(_)));
    raw.sections.extend([
        section("root_reducers"),
        section("submodules"),
        section("policy_none"),
    ]);
    assert!(matches!(
        raw.sections.last(),
        Some(S::CaseConversionPolicy(CaseConversionPolicy::None))
    ));

    let def = ModuleDef::validate(RawModuleDef::V10(raw)).unwrap();
    let reducers: Vec<&str> = def.reducers.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(reducers, ["rootR", "lib.do_it"]);
    let tables: Vec<&str> = def.tables.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(tables, ["lib.item", "user"]);
    let item = def.table("lib.item").unwrap();
    assert_eq!(item.indexes[0].name, "lib.item_id_idx_btree");
    assert_eq!(item.constraints[0].name, "lib.item_id_key");
    assert_eq!(item.source_name, "lib.item");
    // Names stay as they are on the way through the schema endpoint.
    let shown =
        RawModuleDef::from_schema_json(RawVersion::V10, &def.schema_json(RawVersion::V10)).unwrap();
    let again = ModuleDef::validate(shown).unwrap();
    common::assert_same_schema(&def, &again);
    assert_eq!(again.reducers[0].name, "rootR");
}

/// A section alone is a definition of one section.
fn read_section(entry: &Entry) -> RawModuleDefV10Section {
    assert_eq!(entry.text("type"), "RawModuleDefV10Section");
    let one = [&[1, 0, 0, 0][..], &entry.hex()].concat();
    let def = RawModuleDefV10::from_slice(&one).unwrap();
    assert_eq!(def.to_vec(), one);
    let whole = serde_json::json!({ "sections": [entry.0["value"]] });
    same_json(&json::to_string(&def), &whole);
    let read: Result<RawModuleDefV10, _> = json::from_str(&whole.to_string());
    assert_eq!(read.as_ref(), Ok(&def));
    def.sections.into_iter().next().unwrap()
}

/// Bytes and JSON of an entry are the same piece.
fn piece<T: Encode + Decode + Typed + PartialEq + std::fmt::Debug>(entry: &Entry) {
    let piece = T::from_slice(&entry.hex()).unwrap();
    assert_eq!(piece.to_vec(), entry.hex());
    same_json(&json::to_string(&piece), &entry.0["value"]);
    let read = json::from_str(&entry.0["value"].to_string());
    assert_eq!(read, Ok(piece));
}

fn view_header(entry: &Entry) {
    let header = match &entry.0["value"] {
        value if value.get("RowData").is_some() => ViewResultHeader::RowData,
        value => ViewResultHeader::RawSql(value["RawSql"].as_str().unwrap().to_owned()),
    };
    assert_eq!(header.to_vec(), entry.hex());
    assert_eq!(ViewResultHeader::from_slice(&entry.hex()), Ok(header));
}

#[test]
fn pieces() {
    sections_are(PIECES, &["pieces", "sections"]);
    each(PIECES, "pieces", |entry| match entry.text("type") {
        "RawIndexAlgorithm" => piece::<IndexAlgorithm>(entry),
        "RawSequenceDefV10" => piece::<RawSequenceDefV10>(entry),
        "RawConstraintDefV10" => piece::<RawConstraintDefV10>(entry),
        "RawColumnDefaultValueV10" => piece::<RawColumnDefaultValueV10>(entry),
        "RawScopedTypeNameV10" => piece::<RawScopedTypeNameV10>(entry),
        "MethodOrAny" => piece::<MethodOrAny>(entry),
        "RawScheduleDefV9" => piece::<RawScheduleDefV9>(entry),
        "RawViewDefV10" => piece::<RawViewDefV10>(entry),
        "ViewResultHeader" => view_header(entry),
        unknown => panic!("no test reads {unknown}"),
    });
    each(PIECES, "sections", |entry| drop(read_section(entry)));
    // Some of version 9 is optional as a whole.
    let schedule = named(PIECES, "pieces", "schedule_version_9").hex();
    let some = Some(RawScheduleDefV9::from_slice(&schedule).unwrap());
    assert_eq!(some.to_vec(), [&[0][..], &schedule].concat());
}

/// What views answer: the header, and behind it the rows of `person` where it announces them.
#[test]
fn view_results() {
    sections_are("03-view-results.json", &["note", "results"]);
    each("03-view-results.json", "results", |entry| {
        let Some(rows) = entry.0["value"]["RowData"].as_array() else {
            return view_header(entry);
        };
        let mut bytes = ViewResultHeader::RowData.to_vec();
        (rows.len() as u32).encode(&mut bytes);
        for row in rows {
            row["id"].as_u64().unwrap().encode(&mut bytes);
            row["name"].as_str().unwrap().encode(&mut bytes);
            (row["age"].as_u64().unwrap() as u8).encode(&mut bytes);
        }
        assert_eq!(bytes, entry.hex());
    });
}

fn refused_version_8(definition: &[u8]) {
    let error = ModuleDef::from_bsatn(definition).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("invalid bsatn module def: module definitions of version 8"),
        "{error}"
    );
    assert!(error.to_string().ends_with("[LC0201]"));
}

#[test]
fn version_8_is_refused() {
    refused_version_8(&named(DEFINITIONS, "", "empty_version_8").hex());
}

#[test]
fn unknown_section() {
    let error = ModuleDef::from_bsatn(&[2, 1, 0, 0, 0, 0x63, 0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid bsatn module def: unknown tag 0x63 for sum type RawModuleDefV10Section"
    );
}

#[test]
fn version_9() {
    let (raw, def) = load("version_9");
    assert_eq!(def.version, RawVersion::V9);
    let person = def.table("person").unwrap();
    assert_eq!(person.indexes[0].name, "person_id_idx_btree");
    assert_eq!(person.indexes[0].source_name, "person_id_idx_btree");
    assert_eq!(person.indexes[0].accessor_name.as_deref(), Some("id"));
    assert!(person.indexes[0].unique);
    assert_eq!(person.sequences[0].name, "person_id_seq");
    assert_eq!(person.columns[1].default, Some(7i32.to_vec()));
    assert_eq!(def.init, Some(0));
    assert_eq!(def.reducers[0].visibility, Visibility::ClientCallable);
    assert!(def.procedure("p").is_some());
    assert!(def.view("v").unwrap().is_anonymous);
    assert_eq!(def.row_level_security, ["SELECT * FROM person"]);
    // Its own version 9 form differs only in that all names are given.
    let shown = def.to_raw_v9();
    let RawModuleDef::V9(raw) = raw else { panic!() };
    assert_eq!(
        (&shown.typespace, &shown.reducers, &shown.types),
        (&raw.typespace, &raw.reducers, &raw.types)
    );
    assert_eq!(
        (&shown.misc_exports, &shown.row_level_security),
        (&raw.misc_exports, &raw.row_level_security)
    );
    assert_eq!(
        shown.tables[0].constraints[0].name.as_deref(),
        Some("person_id_key")
    );
    common::assert_same_schema(&def, &ModuleDef::validate(RawModuleDef::V9(shown)).unwrap());
    // And as version 10 it is the same module.
    let again = ModuleDef::validate(RawModuleDef::V10(def.to_raw_v10())).unwrap();
    common::assert_same_schema(&def, &again);
}

fn program_hash(entry: &Entry, member: &str) -> Hash {
    Hash::from_hex(entry.text(member)).unwrap()
}

fn check_migration_token(entry: &Entry) {
    let identity = Identity::from_hex(entry.text("database_identity")).unwrap();
    let old = program_hash(entry, "old_program_hash");
    let token = migration_token(identity, old, program_hash(entry, "new_program_hash"));
    assert_eq!(token.to_hex(), entry.text("hex"));
    assert_eq!(token.to_json_u256(), entry.text("wire"));
}

fn check_view_arguments(entry: &Entry) {
    let arguments = entry.bytes("arguments");
    assert_eq!(view_args_hash(&arguments).to_hex(), entry.text("hex"));
    let given = entry.0["given"].as_str().map(|_| entry.bytes("given"));
    if let Some(sender) = entry.0["sender"].as_str() {
        let sender = Identity::from_hex(sender).unwrap();
        let parts = [sender.to_vec(), given.unwrap_or_default()];
        assert_eq!(parts.concat(), arguments);
    }
}

#[test]
fn migration_token_vector() {
    let entry = named("02-hashes.json", "", "migration_token");
    check_migration_token(&entry);
}

#[test]
fn hashes() {
    each("02-hashes.json", "", |entry| match entry.text("function") {
        "Keccak-256" => {
            let hash = Hash::keccak256(&entry.bytes("input"));
            assert_eq!(hash.to_hex(), entry.text("hex"));
        }
        "Keccak-256 of three texts" => check_migration_token(entry),
        "BLAKE3-256" => check_view_arguments(entry),
        unknown => panic!("no test computes {unknown}"),
    });
}

/// Arguments follow the types of the owning level, in BSATN without any framing.
#[test]
fn argument_checks() {
    let mut build = common::Build::default();
    let list = build.named_type(
        "List",
        AlgebraicType::sum([
            ("end", AlgebraicType::unit()),
            ("more", AlgebraicType::reference(1)),
        ]),
    );
    assert_eq!(list, TypeRef(0));
    build.named_type(
        "Node",
        AlgebraicType::product([("n", AlgebraicType::U8), ("rest", AlgebraicType::Ref(list))]),
    );
    let params = |types: &[AlgebraicType]| {
        lightcone_types::ProductType::new(
            types
                .iter()
                .enumerate()
                .map(|(i, t)| (format!("p{i}"), t.clone())),
        )
    };
    use AlgebraicType as T;
    build.reducers = vec![
        common::reducer("none", params(&[])),
        common::reducer("flat", params(&[T::U32, T::U32, T::I64])),
        common::reducer(
            "mixed",
            params(&[
                T::U8,
                T::Bool,
                T::String,
                T::bytes(),
                T::array(T::F64),
                T::identity(),
            ]),
        ),
        common::reducer(
            "list",
            params(&[T::Ref(list), T::option(T::Bool), T::array(T::String)]),
        ),
    ];
    let def = build.valid();
    let check = |name: &str, bytes: &[u8]| {
        def.reducer(name)
            .unwrap()
            .1
            .validate_args(bytes)
            .map_err(|e| e.to_string())
    };
    assert_eq!(check("none", &[1]), Ok(0));
    assert_eq!(check("flat", &[0; 16]), Ok(16));
    assert_eq!(check("flat", &[0; 20]), Ok(16));
    assert_eq!(
        check("flat", &[0; 5]),
        Err("data too short for u32: Expected 4, given 1".into())
    );
    let mut mixed = vec![9, 1];
    "hé".to_owned().encode(&mut mixed);
    vec![1u8, 2, 3].encode(&mut mixed);
    vec![1.5f64].encode(&mut mixed);
    mixed.extend([7; 32]);
    assert_eq!(check("mixed", &mixed), Ok(mixed.len()));
    for cut in 0..mixed.len() {
        assert!(
            check("mixed", &mixed[..cut])
                .unwrap_err()
                .starts_with("data too short"),
            "{cut}"
        );
    }
    mixed[1] = 2;
    assert_eq!(
        check("mixed", &mixed),
        Err("byte 2 not valid as `bool` (must be 0 or 1)".into())
    );
    mixed[1] = 0;
    mixed[7] = 0xff;
    assert_eq!(check("mixed", &mixed), Err("invalid utf8".into()));
    assert_eq!(check("list", &[1, 5, 1, 6, 0, 0, 1, 0, 0, 0, 0, 9]), Ok(11));
    assert_eq!(
        check("list", &[2]),
        Err("unknown tag 0x2 for sum type <unknown>".into())
    );
    // Input chooses the depth of a recursive parameter.
    let deep: Vec<u8> = [1, 0].repeat(100_000);
    assert!(check("list", &deep).unwrap_err().contains("nested"));

    // The checks agree with decoding.
    for reducer in &def.reducers {
        for bytes in [
            &mixed[..],
            &[0; 40],
            &[1; 40],
            &[0, 1, 0, 0, 0, 65, 0, 0, 0],
        ] {
            let mut reader = lightcone_types::bsatn::Reader::new(bytes);
            let ty = AlgebraicType::Product(reducer.params.clone());
            let decoded = lightcone_types::bsatn::decode_value(&def.typespace, &ty, &mut reader);
            assert_eq!(
                reducer.validate_args(bytes),
                decoded.map(|_: AlgebraicValue| reader.position()),
                "{}",
                reducer.name
            );
        }
    }
}
