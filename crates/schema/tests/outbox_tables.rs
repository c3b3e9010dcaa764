//! Outbox tables (02 §8.7a): the section, what is refused, what updates may change, and the hash of a receiver.

use crate::common::*;
use lightcone_schema::raw::*;
use lightcone_schema::{plan, ModuleDef, Visibility};
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{AlgebraicType as T, ColId, Hash, ProductType, SpecialProduct};

fn outbox() -> RawOutboxDefV10 {
    RawOutboxDefV10 {
        table_name: "ping_out".into(),
        remote_reducer: "receive_ping".into(),
        target_column: ColId(1),
        arg_columns: cols(&[2]),
        on_result_reducer: Some("on_ping".into()),
        signature_hash: Hash([0xab; 32]),
    }
}

fn result() -> T {
    T::result(T::unit(), T::String)
}

fn build(change: impl FnOnce(&mut Build, &mut Vec<RawOutboxDefV10>)) -> Build {
    let mut build = Build::default();
    let target = ("target", SpecialProduct::Identity.into());
    keyed(build.table(
        "ping_out",
        &[ID, target, ("body", T::String), ("other", T::U256)],
    ));
    let params = ProductType::new([("ping", T::reference(0)), ("result", result())]);
    build.reducers = vec![
        reducer("on_ping", params),
        reducer("idle", ProductType::default()),
    ];
    let mut outboxes = vec![outbox()];
    change(&mut build, &mut outboxes);
    build.rest.push(RawModuleDefV10Section::Outboxes(outboxes));
    build
}

#[test]
fn the_section_is_that_of_the_reference() {
    let section = RawModuleDefV10Section::Outboxes(vec![outbox()]);
    let mut expected = from_hex(
        "10010000000800000070696e675f6f75740c000000726563656976655f70696e67010001000000020000070000006f6e5f70696e67",
    );
    expected.extend([0xab; 32]);
    assert_eq!(section.to_vec(), expected);
    let raw = RawModuleDefV10 {
        sections: vec![section],
    };
    assert_eq!(RawModuleDefV10::from_slice(&raw.to_vec()), Ok(raw));
}

#[test]
fn a_table_with_an_outbox_is_shown_as_it_was_sent() {
    let def = build(|_, _| {}).valid();
    let declared = def.tables[0].outbox.as_ref().expect("an outbox");
    assert_eq!(declared.on_result.as_deref(), Some("on_ping"));
    assert_eq!(def.reducers[0].visibility, Visibility::Private);
    assert_eq!(def.reducers[1].visibility, Visibility::ClientCallable);
    let shown = def.to_raw_v10().sections.into_iter();
    let shown = shown.filter_map(|section| match section {
        RawModuleDefV10Section::Outboxes(outboxes) => Some(outboxes),
        _ => None,
    });
    assert_eq!(shown.collect::<Vec<_>>(), [vec![outbox()]]);
    let json = def.schema_json(RawVersion::V10);
    let read = RawModuleDef::from_schema_json(RawVersion::V10, &json).expect("JSON");
    assert_same_schema(&def, &ModuleDef::validate(read).expect("valid"));
    // The identity alone is sent to as well.
    build(|_, outboxes| outboxes[0].target_column = ColId(3)).valid();
}

#[test]
fn what_is_refused() {
    let only = |build: Build| {
        let texts = texts(build);
        assert_eq!(texts.len(), 1, "{texts:?}");
        texts[0].clone()
    };
    let text = only(build(|_, o| o[0].table_name = "pingOut".into()));
    assert_eq!(text, "outbox table pingOut not found");
    let text = only(build(|_, o| o.push(outbox())));
    assert!(text.contains("more than one outbox"), "{text}");
    let text = only(build(|b, _| b.tables[0].is_event = true));
    assert!(text.contains("event table"), "{text}");
    let text = only(build(|b, _| b.tables[0].primary_key.clear()));
    assert!(text.contains("of type u64 as its primary key"), "{text}");
    for (target, part) in [
        (9, "no column for its target"),
        (0, "in its primary key"),
        (2, "of type Identity"),
    ] {
        let text = only(build(|_, o| o[0].target_column = ColId(target)));
        assert!(text.contains(part), "{text}");
    }
    let text = only(build(|_, o| o[0].arg_columns = cols(&[2, 9])));
    assert!(text.contains("no column for an argument"), "{text}");
    for name in ["child.on_ping", "child::on_ping"] {
        let text = only(build(|_, o| o[0].on_result_reducer = Some(name.into())));
        let part = "must be an unqualified name in the same module; cross-module callbacks are not supported";
        assert!(text.contains(part), "{text}");
    }
    let text = only(build(|_, o| {
        o[0].on_result_reducer = Some("unknown".into())
    }));
    assert!(text.contains("no reducer `unknown`"), "{text}");
    let text = only(build(|_, o| o[0].on_result_reducer = Some("idle".into())));
    assert!(text.contains("Result<(), String>"), "{text}");
}

#[test]
fn what_updates_may_change() {
    let def = || build(|_, _| {}).valid();
    let without = build(|_, o| o.clear()).valid();
    let refused = |old: &ModuleDef, new: &ModuleDef| {
        let refused = plan(old, new).expect_err("refused");
        let texts: Vec<String> = refused.reasons.iter().map(ToString::to_string).collect();
        texts.join("; ")
    };
    let begins = |text: String, expected: &str| assert!(text.starts_with(expected), "{text}");
    begins(
        refused(&without, &def()),
        "Adding outbox metadata to table ping_out requires a manual migration",
    );
    begins(
        refused(&def(), &without),
        "Removing outbox metadata from table ping_out requires a manual migration",
    );
    let target = build(|_, o| o[0].target_column = ColId(3)).valid();
    begins(
        refused(&def(), &target),
        "Changing the target column of outbox table ping_out from target to other requires a manual migration",
    );
    let other = build(|_, o| {
        o[0].remote_reducer = "receive_more".into();
        o[0].on_result_reducer = None;
    });
    let changed = plan(&def(), &other.valid()).expect("a plan");
    let steps: Vec<_> = changed
        .steps
        .iter()
        .map(|step| step.kind().as_str())
        .collect();
    assert_eq!(steps, ["ChangeOutbox"]);
    assert!(!changed.breaks_clients());
}

#[test]
fn a_receiver_is_known_by_canonical_names() {
    let mut build = Build::default();
    let body = |name: &str| ProductType::new([(name, T::String)]);
    build.reducers = vec![
        reducer("receive", body("body")),
        reducer("receive_two", body("Body")),
        reducer("nothing", ProductType::default()),
    ];
    let def = build.valid();
    let hash = |name: &str| {
        def.reducer(name)
            .expect("it is there")
            .1
            .signature_hash()
            .to_hex()
    };
    let known = "386957a94632958d5ae8343e258f3a6f9dce9d7dafc46831050894baa7a4e4e1";
    assert_eq!([hash("receive"), hash("receive_two")], [known, known]);
    assert_eq!(
        hash("nothing"),
        "bc436888fd947d2bfd49ed6bddad31f0245c34fd42c85f9360fa0b477aa957fc"
    );
}
