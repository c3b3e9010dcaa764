//! Plans as people read them (02 §14.7).

use crate::common;
use crate::common::{btree, reducer, sequence, unique, with_sections, Build, ID};
use lightcone_schema::raw::*;
use lightcone_schema::*;
use lightcone_types::{AlgebraicType as T, ColId, ProductType};
use RawModuleDefV10Section as S;

fn header() -> String {
    let rule = "━".repeat(60);
    format!("{rule}\nDatabase Migration Plan\n{rule}\n\n")
}

fn keyed(table: &mut RawTableDefV10) {
    common::keyed(table);
    table.indexes[0].source_name = Some(format!("{}_by_id", table.source_name));
}

fn base() -> Build {
    let mut build = Build::default();
    let table = build.table("p", &[ID, ("name", T::String)]);
    keyed(table);
    table.sequences = vec![sequence(0)];
    build.table("e", &[("a", T::U8)]).is_event = true;
    build.table("s", &[ID, ("at", T::schedule_at())]);
    keyed(&mut build.tables[2]);
    let row = ProductType::new([("row", T::reference(2))]);
    build.reducers = vec![reducer("f", row)];
    build
}

fn text_between(old: Build, new: Build) -> String {
    let (old, new) = (old.valid(), new.valid());
    let plan = plan(&old, &new).expect("a plan");
    let text = plan.text(&old, &new, PlanStyle::NoColor);
    let steps = text.strip_prefix(&header()).expect("begins with the title");
    steps.to_owned()
}

fn text(change: impl FnOnce(&mut Build)) -> String {
    let mut new = base();
    change(&mut new);
    text_between(base(), new)
}

const WARNING: &str =
    "!!! Warning: All clients will be disconnected due to breaking schema changes\n";

fn schedule(table: &str) -> S {
    S::Schedules(vec![RawScheduleDefV10 {
        source_name: None,
        table_name: table.into(),
        schedule_at_col: ColId(1),
        function_name: "f".into(),
    }])
}

fn rules(rules: &[&str]) -> S {
    let rules = rules
        .iter()
        .map(|sql| RawRowLevelSecurityDef { sql: (*sql).into() });
    S::RowLevelSecurity(rules.collect())
}

fn view(is_public: bool) -> S {
    S::Views(vec![RawViewDefV10 {
        source_name: "v".into(),
        index: 0,
        is_public,
        is_anonymous: true,
        params: ProductType::default(),
        return_type: T::array(T::reference(0)),
    }])
}

#[test]
fn an_unchanged_schema_has_the_title_only() {
    assert_eq!(text(|_| {}), "");
    let unchanged = || {
        let mut build = base();
        build.rest.extend([view(true), rules(&["SELECT * FROM p"])]);
        build
    };
    assert_eq!(text_between(unchanged(), unchanged()), "");
}

#[test]
fn tables() {
    let added = |b: &mut Build| {
        let table = b.table("q", &[ID, ("at", T::schedule_at())]);
        keyed(table);
        table.sequences = vec![sequence(0)];
        b.reducers[0].params = ProductType::new([("row", T::reference(3))]);
        b.rest.push(schedule("q"));
    };
    assert_eq!(
        text(added),
        "▸ Created user table: q (public)
    Columns:
        • id: U64
        • at: (Interval: (__time_duration_micros__: I64) | Time: (__timestamp_micros_since_unix_epoch__: I64))
    Unique constraints:
        • q_id_key on [id]
    Indexes:
        • q_id_idx_btree on [id]
    Auto-increment constraints:
        • q_id_seq on id
    Schedule:
        • Calls reducer: f

"
    );
    let mut old = base();
    added(&mut old);
    let removed = format!("▸ Removed table: q\n\n{WARNING}");
    assert_eq!(text_between(old, base()), removed);
    // What a table does not have is not listed.
    assert_eq!(
        text(|b| b.table("q", &[("x", T::U8)]).table_access = TableAccess::Private),
        "▸ Created user table: q (private)\n    Columns:\n        • x: U8\n\n"
    );
}

#[test]
fn columns() {
    let added = text(|b| {
        b.types[0] = T::product([ID, ("name", T::String), ("lvl", T::U16)]);
        b.tables[0].default_values.push(RawColumnDefaultValueV10 {
            col_id: ColId(2),
            value: vec![7, 0],
        });
    });
    assert_eq!(
        added,
        format!(
            "▸ Created column in table p\n    + lvl: U16 (default: U16(\n    7,\n))\n{WARNING}"
        )
    );
    let reschema = text(|b| b.types[1] = T::product([("a", T::U16)]));
    assert_eq!(
        reschema,
        format!("▸ Changed schema of event table e\n{WARNING}")
    );
    let colors = |names: &[&'static str]| {
        let mut build = base();
        let color = build.named_type("Color", T::simple_enum(names.iter().copied()));
        build.types[0] = T::product([ID, ("name", T::Ref(color))]);
        build
    };
    assert_eq!(
        text_between(colors(&["red"]), colors(&["red", "blue"])),
        "▸ Changed columns for table p\n"
    );
    assert_eq!(
        text(|b| b.types[0] = T::product([ID, ("Name", T::String)])),
        "▸ Changed accessor name of column name of table p (name → Name)\n"
    );
}

#[test]
fn parts_of_tables() {
    let unique_name = |b: &mut Build| {
        b.tables[0].indexes.push(btree("p_name", &[1]));
        b.tables[0].constraints.push(unique(&[1]));
    };
    assert_eq!(
        text(unique_name),
        "▸ Created index p_name_idx_btree on [name] of table p\n▸ Created unique constraint p_name_key on [name] of table p\n"
    );
    let mut old = base();
    unique_name(&mut old);
    assert_eq!(
        text_between(old, base()),
        "▸ Removed index p_name_idx_btree on [name] of table p\n▸ Removed unique constraint p_name_key on [name] of table p\n"
    );
    assert_eq!(
        text(|b| b.tables[0].sequences.clear()),
        "▸ Removed auto-increment constraint p_id_seq on column id of table p\n"
    );
    assert_eq!(
        text(|b| b.tables[2].sequences.push(sequence(0))),
        "▸ Created auto-increment constraint s_id_seq on column id of table s\n"
    );
    assert_eq!(
        text(|b| b.tables[0].primary_key.clear()),
        "▸ Changed primary key on table p (removed)\n"
    );
    assert_eq!(
        text(|b| b.tables[0].table_access = TableAccess::Private),
        "▸ Changed access for table p (public → private)\n"
    );
    assert_eq!(
        text(|b| b.tables[0].source_name = "P".into()),
        "▸ Changed accessor name of table p (p → P)\n"
    );
    assert_eq!(
        text(|b| b.tables[0].indexes[0].source_name = Some("i".into())),
        "▸ Changed source name of index p_id_idx_btree of table p (p_by_id → i)\n"
    );
    let mut scheduled = base();
    scheduled.rest.push(schedule("s"));
    assert_eq!(
        text_between(base(), scheduled.clone()),
        "▸ Created schedule for table s calling reducer f\n"
    );
    assert_eq!(
        text_between(scheduled, base()),
        "▸ Removed schedule for table s calling reducer f\n"
    );
}

#[test]
fn views_and_rules() {
    let with = |section: S| {
        let mut build = base();
        build.rest.push(section);
        build
    };
    assert_eq!(
        text_between(base(), with(view(true))),
        "▸ ▸ Created anonymous view: v\n    Columns:\n        • id: U64\n        • name: String\n\n"
    );
    assert_eq!(
        text_between(with(view(true)), base()),
        format!("▸ Removed anonymous view: v\n\n{WARNING}")
    );
    // The reference cannot print this one.
    assert_eq!(
        text_between(with(view(true)), with(view(false))),
        "▸ Changed access for view v (public → private)\n"
    );
    // Those that stay are left out.
    assert_eq!(
        text_between(
            with(rules(&["SELECT * FROM p", "SELECT * FROM s"])),
            with(rules(&["SELECT * FROM e", "SELECT * FROM s"]))
        ),
        format!(
            "▸ Removed row level security policy:\n    `SELECT * FROM p`\n\
             ▸ Created row level security policy:\n    `SELECT * FROM e`\n{WARNING}"
        )
    );
}

/// Tables of submodules carry their namespace, what is in them does not.
#[test]
fn submodules() {
    let module = |is_keyed: bool| {
        let mut inner = Build::default();
        let table = inner.table("t", &[ID]);
        if is_keyed {
            keyed(table);
        }
        with_sections(vec![S::Submodules(vec![RawSubmoduleV10 {
            namespace: "sub".into(),
            module: inner.raw(),
        }])])
    };
    assert_eq!(
        text_between(module(false), module(true)),
        "▸ Created index t_id_idx_btree on [id] of table sub.t\n\
         ▸ Created unique constraint t_id_key on [id] of table sub.t\n\
         ▸ Changed primary key on table sub.t (added: id)\n"
    );
}

#[test]
fn colours() {
    let mut new = base();
    new.table("q", &[("x", T::U8)]);
    let (old, new) = (base().valid(), new.valid());
    let plan = plan(&old, &new).expect("a plan");
    let coloured = plan.text(&old, &new, PlanStyle::AnsiColor);
    let (reset, bold) = ("\u{1b}[0m", "\u{1b}[1m");
    for (colour, piece) in [
        ("34", "Database Migration Plan"),
        ("32", "Created"),
        ("36", "q"),
        ("34", "Columns"),
        ("36", "x"),
    ] {
        let painted = format!("{reset}{bold}\u{1b}[{colour}m{piece}{reset}");
        assert!(coloured.contains(&painted), "{painted:?} in {coloured:?}");
    }
    assert!(coloured.contains(&format!("{reset}\u{1b}[35mU8{reset}")));
    // Without its colours it is the plain text.
    let mut plain = String::new();
    for piece in coloured.split('\u{1b}') {
        match piece.strip_prefix('[') {
            Some(rest) => plain.push_str(rest.split_once('m').map_or("", |(_, text)| text)),
            None => plain.push_str(piece),
        }
    }
    assert_eq!(plain, plan.text(&old, &new, PlanStyle::NoColor));
}

/// A module may make the plan as long as it likes.
#[test]
fn long_plans_are_cut() {
    let mut new = base();
    let long = "n".repeat(100);
    let fields: Vec<(String, T)> = (0..1000).map(|at| (format!("{long}{at}"), T::U8)).collect();
    for table in 0..20 {
        let row = new.named_type(&format!("Wide{table}"), T::product(fields.clone()));
        let mut def = new.tables[1].clone();
        def.source_name = format!("wide{table}");
        def.product_type_ref = row;
        new.tables.push(def);
    }
    let (old, new) = (base().valid(), new.valid());
    let text = plan(&old, &new)
        .expect("a plan")
        .text(&old, &new, PlanStyle::NoColor);
    assert!(text.len() < (1 << 20) + 100, "{} bytes", text.len());
    assert!(text.ends_with("\n... and more: the plan is cut after 1048576 bytes\n"));
}
