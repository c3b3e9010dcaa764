//! Functions, views, HTTP and submodules: every kind of validation error, and what is accepted right
//! next to it (02 §8.7–§8.11).

use crate::common;
use crate::common::*;
use lightcone_schema::raw::*;
use lightcone_schema::ValidationError as E;
use lightcone_schema::*;
use lightcone_types::{AlgebraicType as T, ColId, ProductType, TypeRef};

#[test]
fn parameters_and_returns() {
    let with = |change: fn(&mut RawReducerDefV10)| {
        let mut build = Build::default();
        let mut reducer = reducer("f", ProductType::new([("a", T::U8)]));
        change(&mut reducer);
        build.reducers.push(reducer);
        build
    };
    with(|_| {}).valid();
    refused!(
        with(|r| r.params.elements[0].name = None),
        E::UnnamedParameter { .. }
    );
    refused!(
        with(|r| r.ok_return_type = T::U8),
        E::InvalidReducerReturnType { .. }
    );
    refused!(
        with(|r| r.err_return_type = T::U8),
        E::InvalidReducerReturnType { .. }
    );
    let inline = with(|r| r.params.elements[0].algebraic_type = T::product([("x", T::U8)]));
    assert!(texts(inline)[0].starts_with("error at reducer `f` argument 0 (`a`): "));
    let dangling = with(|r| r.params.elements[0].algebraic_type = T::array(T::reference(3)));
    refused!(
        dangling,
        E::TypeUse {
            reason: TypeUseError::InvalidRef(TypeRef(3)),
            ..
        }
    );
    // Parameter names stay as sent, reducer names do not.
    let def = with(|r| {
        r.source_name = "doIt".into();
        r.params.elements[0].name = Some("playerName".into());
    })
    .valid();
    assert_eq!(
        def.reducer("do_it").unwrap().1.params.to_string(),
        "(playerName: U8)"
    );

    let procedure = RawProcedureDefV10 {
        source_name: "p".into(),
        params: ProductType::default(),
        return_type: T::product([("x", T::U8)]),
        visibility: Visibility::ClientCallable,
    };
    let build = with_sections(vec![RawModuleDefV10Section::Procedures(vec![procedure])]);
    refused!(build, E::TypeUse { .. });
}

fn lifecycle(lifecycle_spec: Lifecycle, function_name: &str) -> RawLifeCycleReducerDefV10 {
    RawLifeCycleReducerDefV10 {
        lifecycle_spec,
        function_name: function_name.into(),
    }
}

#[test]
fn lifecycles() {
    let with = |entries: Vec<RawLifeCycleReducerDefV10>| {
        let mut build = with_sections(vec![RawModuleDefV10Section::LifeCycleReducers(entries)]);
        build.reducers = vec![
            reducer("init", ProductType::default()),
            reducer("other", ProductType::default()),
        ];
        build
    };
    assert_eq!(with(vec![]).valid().init, None, "names carry no meaning");
    assert_eq!(
        with(vec![lifecycle(Lifecycle::Init, "other")]).valid().init,
        Some(1)
    );
    let missing = with(vec![lifecycle(Lifecycle::Init, "x")]);
    assert_eq!(texts(missing), ["lifecycle event Init without reducer"]);
    let twice = with(vec![
        lifecycle(Lifecycle::Init, "init"),
        lifecycle(Lifecycle::Init, "other"),
    ]);
    assert_eq!(
        texts(twice),
        ["Multiple reducers defined for lifecycle event Init"]
    );
    let both = with(vec![
        lifecycle(Lifecycle::Init, "init"),
        lifecycle(Lifecycle::OnConnect, "init"),
    ]);
    refused!(both, E::DuplicateLifecycle(Lifecycle::OnConnect));
}

#[test]
fn schedules() {
    let with = |change: fn(&mut Build, &mut Vec<RawScheduleDefV10>)| {
        let mut build = Build::default();
        keyed(build.table("jobs", &[ID, ("at", T::schedule_at())]));
        build.reducers = vec![
            reducer("run", ProductType::new([("job", T::reference(0))])),
            reducer("idle", ProductType::default()),
        ];
        let mut schedules = vec![RawScheduleDefV10 {
            source_name: None,
            table_name: "jobs".into(),
            schedule_at_col: ColId(1),
            function_name: "run".into(),
        }];
        change(&mut build, &mut schedules);
        build
            .rest
            .push(RawModuleDefV10Section::Schedules(schedules));
        build
    };
    let def = with(|_, _| {}).valid();
    assert_eq!(def.tables[0].schedule.as_ref().unwrap().name, "jobs_sched");
    assert_eq!(def.reducers[0].visibility, Visibility::Private);
    assert_eq!(def.reducers[1].visibility, Visibility::ClientCallable);
    refused!(
        with(|_, s| s[0].table_name = "x".into()),
        E::TableNotFound { .. }
    );
    refused!(
        with(|_, s| s[0].schedule_at_col = ColId(0)),
        E::ScheduledIncorrectColumns { .. }
    );
    refused!(
        with(|_, s| s[0].schedule_at_col = ColId(9)),
        E::ScheduledIncorrectColumns { .. }
    );
    refused!(
        with(|_, s| s[0].function_name = "x".into()),
        E::MissingScheduledFunction { .. }
    );
    refused!(
        with(|_, s| s[0].function_name = "idle".into()),
        E::IncorrectScheduledFunctionParams { .. }
    );
    refused!(
        with(|b, _| b.tables[0].is_event = true),
        E::ScheduledEventTable { .. }
    );
    refused!(
        with(|b, _| b.tables[0].primary_key.clear()),
        E::ScheduledIncorrectColumns { .. }
    );
    refused!(
        with(|_, s| s.push(s[0].clone())),
        E::DuplicateName { .. },
        E::DuplicateName { .. }
    );
}

#[test]
fn parameters_of_views() {
    use RawModuleDefV10Section as S;
    let with = |params: &[(&str, T)], return_type: T, keys: &[&str]| {
        let mut build = Build::default();
        keyed(build.table("p", &[ID, ("someName", T::String)]));
        let view = RawViewDefV10 {
            source_name: "v".into(),
            index: 0,
            is_public: true,
            is_anonymous: true,
            params: ProductType::new(params.iter().cloned()),
            return_type,
        };
        let key = |column: &&str| RawViewPrimaryKeyDefV10 {
            view_source_name: "v".into(),
            columns: vec![(*column).to_owned()],
        };
        let keys = keys.iter().map(key).collect();
        build.rest = vec![S::Views(vec![view]), S::ViewPrimaryKeys(keys)];
        build
    };
    let rows = T::array(T::reference(0));
    let good = [("room", T::U32), ("where", T::reference(0))];
    let def = with(&good, rows.clone(), &[]).valid();
    assert!(def.views[0].has_parameters());
    for float in [T::F32, T::F64] {
        let refused = with(&[("a", T::U8), ("b", float)], rows.clone(), &[]);
        refused!(refused, E::FloatViewParameter { .. });
    }
    refused!(
        with(&good, rows, &["id"]),
        E::ViewPrimaryKeyWithParameters { .. }
    );
    let query = T::product([("__query__", T::reference(0))]);
    let inherited = with(&good, query.clone(), &[]).valid();
    assert_eq!(inherited.views[0].primary_key, None);
    let inherited = with(&[], query, &[]).valid();
    assert_eq!(inherited.views[0].primary_key, Some(ColId(0)));
    let error = E::FloatViewParameter {
        view: "v".into(),
        parameter: "p".into(),
    };
    let text = "View v has a float parameter `p`, which views can't take yet";
    assert_eq!(error.to_string(), text);
    let error = E::ViewPrimaryKeyWithParameters { view: "v".into() };
    let text = "View v has parameters and cannot have a primary key";
    assert_eq!(error.to_string(), text);
}

#[test]
fn views() {
    use RawModuleDefV10Section as S;
    let view = |name: &str, return_type: T| RawViewDefV10 {
        source_name: name.into(),
        index: 0,
        is_public: true,
        is_anonymous: true,
        params: ProductType::default(),
        return_type,
    };
    let with = |views: Vec<RawViewDefV10>, keys: Vec<(&str, Vec<&str>)>| {
        let mut build = Build::default();
        keyed(build.table("p", &[ID, ("someName", T::String)]));
        let keys = keys
            .into_iter()
            .map(|(view, columns)| RawViewPrimaryKeyDefV10 {
                view_source_name: view.into(),
                columns: columns.into_iter().map(Into::into).collect(),
            });
        build.rest = vec![S::Views(views), S::ViewPrimaryKeys(keys.collect())];
        build
    };
    let query = T::product([("__query__", T::reference(0))]);
    for good in [
        T::option(T::reference(0)),
        T::array(T::reference(0)),
        query.clone(),
    ] {
        with(vec![view("v", good)], vec![]).valid();
    }
    for bad in [
        T::U8,
        T::array(T::U8),
        T::reference(0),
        T::product([("x", T::reference(0))]),
    ] {
        refused!(
            with(vec![view("v", bad)], vec![]),
            E::InvalidViewReturnType { .. }
        );
    }
    let dangling = with(vec![view("v", T::array(T::reference(7)))], vec![]);
    refused!(dangling, E::InvalidProductTypeRef { entity: "View", .. });
    let rows = || vec![view("theView", T::array(T::reference(0)))];
    let def = with(rows(), vec![("theView", vec!["someName"])]).valid();
    assert_eq!(def.view("the_view").unwrap().primary_key, Some(ColId(1)));
    assert_eq!(with(rows(), vec![]).valid().views[0].primary_key, None);
    assert_eq!(
        with(rows(), vec![("theView", vec![])]).valid().views[0].primary_key,
        None
    );
    let inherited = with(vec![view("v", query)], vec![]).valid();
    assert_eq!(
        inherited.views[0].primary_key,
        Some(ColId(0)),
        "a query view inherits its table's key"
    );
    refused!(
        with(rows(), vec![("x", vec!["id"])]),
        E::ViewPrimaryKeyViewNotFound { .. }
    );
    refused!(
        with(rows(), vec![("theView", vec!["some_name"])]),
        E::ViewPrimaryKeyColumnNotFound { .. }
    );
    refused!(
        with(rows(), vec![("theView", vec!["id", "id"])]),
        E::MultipleViewPrimaryKeyColumns { .. }
    );
    let repeated = with(
        rows(),
        vec![("theView", vec!["id"]), ("theView", vec!["id"])],
    );
    refused!(repeated, E::RepeatedViewPrimaryKey { .. });
    refused!(
        with(vec![view("st_table", T::array(T::reference(0)))], vec![]),
        E::TableNameReserved { .. }
    );
}

#[test]
fn http() {
    use RawModuleDefV10Section as S;
    let route = |path: &str, method: MethodOrAny| RawHttpRouteDefV10 {
        handler_function: "pingPong".into(),
        method,
        path: path.into(),
    };
    let handler = RawHttpHandlerDefV10 {
        source_name: "pingPong".into(),
    };
    let with = |handlers: Vec<RawHttpHandlerDefV10>, routes: Vec<RawHttpRouteDefV10>| {
        with_sections(vec![S::HttpHandlers(handlers), S::HttpRoutes(routes)])
    };
    let get = || MethodOrAny::Method(HttpMethod::Get);
    let post = || MethodOrAny::Method(HttpMethod::Post);
    let good = vec![
        route("", get()),
        route("/a-b_c~9/", get()),
        route("/a", get()),
        route("/a", post()),
    ];
    assert_eq!(
        with(vec![handler.clone()], good).valid().http_handlers[0].name,
        "ping_pong"
    );
    for bad in ["a", "/A", "/a b", "/é", "/%20"] {
        refused!(
            with(vec![handler.clone()], vec![route(bad, get())]),
            E::InvalidHttpRoutePath { .. }
        );
    }
    refused!(
        with(vec![], vec![route("/a", get())]),
        E::MissingHttpHandler { .. }
    );
    refused!(
        with(vec![handler.clone(), handler.clone()], vec![]),
        E::DuplicateHttpHandlerName { .. }
    );
    for (first, second) in [
        (get(), get()),
        (get(), MethodOrAny::Any),
        (MethodOrAny::Any, post()),
    ] {
        let routes = vec![route("/a", first), route("/a", second)];
        refused!(
            with(vec![handler.clone()], routes),
            E::DuplicateHttpRoute { .. }
        );
    }
}

#[test]
fn submodules() {
    use RawModuleDefV10Section as S;
    let with = |submodules: Vec<(&str, Build)>| {
        let submodules = submodules
            .into_iter()
            .map(|(namespace, module)| RawSubmoduleV10 {
                namespace: namespace.into(),
                module: module.raw(),
            });
        with_sections(vec![S::Submodules(submodules.collect())])
    };
    let library = || {
        let mut build = one_table("myItem", &[ID], keyed);
        build.reducers = vec![reducer("doIt", ProductType::default())];
        build
    };
    let mut root = with(vec![
        ("libA", library()),
        ("b", with(vec![("c", library())])),
    ]);
    root.reducers = vec![reducer("z", ProductType::default())];
    let def = root.valid();
    let tables: Vec<&str> = def.tables.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(tables, ["b.c.my_item", "lib_a.my_item"]);
    assert_eq!(def.tables[0].source_name, "b.c.myItem");
    // Module code goes by the names that it has given.
    assert_eq!(def.tables[1].source_name, "libA.myItem");
    let reducers: Vec<&str> = def.reducers.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(reducers, ["z", "lib_a.do_it", "b.c.do_it"]);
    let again = ModuleDef::validate(RawModuleDef::V10(def.to_raw_v10())).unwrap();
    common::assert_same_schema(&def, &again);
    for pair in [["a", "a"], ["libA", "lib_a"]] {
        let both = pair.map(|name| (name, library())).to_vec();
        refused!(with(both), E::DuplicateName { .. });
    }
    let mut chosen = with(vec![("libA", library())]);
    chosen.rest.push(S::ExplicitNames(ExplicitNames {
        entries: vec![ExplicitNameEntry::Namespace(NameMapping {
            source_name: "libA".into(),
            canonical_name: "Books".into(),
        })],
    }));
    assert_eq!(chosen.valid().tables[0].name, "Books.my_item");
    // The policy is the parent's.
    let mut verbatim = with(vec![("libA", library())]);
    let none = CaseConversionPolicy::None;
    verbatim.rest.push(S::CaseConversionPolicy(none));
    assert_eq!(verbatim.valid().tables[0].name, "libA.my_item");
    let mut conflict = with(vec![("doIt", library())]);
    conflict.reducers = vec![reducer("doIt", ProductType::default())];
    let refusal = texts(conflict).concat();
    let text = "naming conflict between reducer `doIt` and submodule namespace `doIt`; ";
    assert!(refusal.contains(text), "{refusal}");
    refused!(with(vec![("a.b", library())]), E::Identifier(_));
    refused!(
        with(vec![(&"a".repeat(64), library())]),
        E::NamespaceTooLong { bytes: 64 }
    );
    with(vec![(&"a".repeat(63), library())]).valid();
    let mut started = library();
    started.rest.push(S::LifeCycleReducers(vec![lifecycle(
        Lifecycle::Init,
        "doIt",
    )]));
    refused!(
        with(vec![("a", started)]),
        E::LifecycleInSubmodule(Lifecycle::Init)
    );
}

#[test]
fn sections() {
    use RawModuleDefV10Section as S;
    refused!(
        with_sections(vec![S::Tables(vec![])]),
        E::RepeatedSection { section: "Tables" }
    );
    let rule = |sql: &str| RawRowLevelSecurityDef { sql: sql.into() };
    let def = with_sections(vec![S::RowLevelSecurity(vec![
        rule("a"),
        rule("b"),
        rule("a"),
    ])])
    .valid();
    assert_eq!(def.row_level_security, ["a", "b"]);
}

/// Names that conversion would change survive the way through the schema endpoint.
#[test]
fn shown_names_survive() {
    use RawModuleDefV10Section as S;
    let names = [("start", "StartUp"), ("ping", "Ping_1")];
    let mut build = with_sections(vec![
        S::LifeCycleReducers(vec![lifecycle(Lifecycle::Init, "start")]),
        S::HttpHandlers(vec![RawHttpHandlerDefV10 {
            source_name: "ping".into(),
        }]),
        S::HttpRoutes(vec![RawHttpRouteDefV10 {
            handler_function: "ping".into(),
            method: MethodOrAny::Any,
            path: "".into(),
        }]),
        S::ExplicitNames(ExplicitNames {
            entries: names
                .map(|(source, canonical)| {
                    ExplicitNameEntry::Function(NameMapping {
                        source_name: source.into(),
                        canonical_name: canonical.into(),
                    })
                })
                .to_vec(),
        }),
    ]);
    build.reducers = vec![reducer("start", ProductType::default())];
    let def = build.valid();
    assert_eq!(
        (
            def.reducers[0].name.as_str(),
            def.http_handlers[0].name.as_str()
        ),
        ("StartUp", "Ping_1")
    );
    let again = ModuleDef::validate(RawModuleDef::V10(def.to_raw_v10())).unwrap();
    assert_eq!(
        (again.reducers[0].name.as_str(), again.init),
        ("StartUp", Some(0))
    );
    assert_eq!(again.http_routes.len(), 1);
}
