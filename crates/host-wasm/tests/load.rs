//! Loading programs: what is refused, with which text, and in which order the load phase runs (spec 03 §3).

use std::sync::Arc;

use crate::common::*;
use lightcone_host::{HostEnv, HostLimits, ModuleEngine};
use lightcone_host_wasm::{WasmEngine, WasmEngineOptions};

const IDENTITY: &str = r#"(import "spacetime_10.0" "identity" (func $identity (param i32)))"#;
const REDUCER: &str = r#"(func (export "__call_reducer__") (param i32 i64 i64 i64 i64 i64 i64 i64 i32 i32) (result i32) i32.const 0)"#;
const DESCRIBE: &str = r#"(func (export "__describe_module__") (param i32))"#;
const MEMORY: &str = r#"(memory (export "memory") 1)"#;

fn module(parts: &[&str]) -> String {
    format!("(module {})", parts.join("\n"))
}

#[test]
fn the_smallest_module_loads() {
    let mut running = Running::start(&module(&[IDENTITY, MEMORY, DESCRIBE, REDUCER]));
    assert_eq!(running.module.describe(), b"");
    assert_eq!(running.code(0, &[]), 0);
}

#[test]
fn hostile_bytes_are_refused() {
    for bytes in [
        &b""[..],
        b"\0asm",
        b"\0asm\x01\0\0\0\xff",
        b"const x = 1;",
        &[0xff; 100],
    ] {
        let error = load(bytes).err().unwrap().to_string();
        assert!(
            error.starts_with("the module could not be compiled: ") && error.ends_with("[LC0321]"),
            "{error}"
        );
    }
    // The text format is for tests only.
    assert!(load(b"(module)").is_err());
}

#[test]
fn abi_versions_are_checked_before_linking() {
    let with_import = |name: &str| {
        let import = format!(r#"(import "{name}" "no_such_function" (func))"#);
        refusal(&module(&[&import, MEMORY, DESCRIBE, REDUCER]))
    };
    assert_eq!(
        with_import("spacetime_10.7"),
        "abi version 10.7 is not supported (host implements 10.6); missing: `spacetime_10.7::no_such_function`"
    );
    assert_eq!(
        with_import("spacetime_x"),
        "import module \"spacetime_x\" has malformed version string"
    );
    assert_eq!(
        with_import("env"),
        "unable to determine ABI of module (may be on an spacetime version < 0.8)"
    );
    assert_eq!(
        with_import("spacetime_10.0"),
        "unknown import: `spacetime_10.0::no_such_function` has not been defined"
    );
    let global = r#"(import "spacetime_99.0" "not_a_function" (global i32))"#;
    let error = refusal(&module(&[global, IDENTITY, MEMORY, DESCRIBE, REDUCER]));
    assert_eq!(
        error,
        "unknown import: `spacetime_99.0::not_a_function` has not been defined"
    );
}

#[test]
fn imports_must_have_our_type_and_be_known() {
    let error = refusal(&module(&[
        r#"(import "spacetime_10.0" "identity" (func (param i64)))"#,
        MEMORY,
        DESCRIBE,
        REDUCER,
    ]));
    assert!(
        error.contains("incompatible import type") || error.contains("types incompatible"),
        "{error}"
    );
    let wasi = r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#;
    let error = refusal(&module(&[IDENTITY, wasi, MEMORY, DESCRIBE, REDUCER]));
    assert_eq!(
        error,
        "unknown import: `wasi_snapshot_preview1::proc_exit` has not been defined"
    );
}

#[test]
fn every_import_of_the_chapter_links() {
    let scan = "(param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)";
    let two = "(param i32 i32) (result i32)";
    let three = "(param i32 i32 i32) (result i32)";
    let four = "(param i32 i32 i32 i32) (result i32)";
    let imports = [
        ("10.0", "table_id_from_name", three),
        ("10.0", "index_id_from_name", three),
        ("10.0", "datastore_table_row_count", two),
        ("10.0", "datastore_table_scan_bsatn", two),
        ("10.0", "datastore_index_scan_range_bsatn", scan),
        ("10.0", "datastore_btree_scan_bsatn", scan),
        ("10.0", "datastore_delete_by_index_scan_range_bsatn", scan),
        ("10.0", "datastore_delete_by_btree_scan_bsatn", scan),
        ("10.0", "datastore_delete_all_by_eq_bsatn", four),
        ("10.0", "row_iter_bsatn_advance", three),
        ("10.0", "row_iter_bsatn_close", "(param i32) (result i32)"),
        ("10.0", "datastore_insert_bsatn", three),
        ("10.0", "datastore_update_bsatn", four),
        (
            "10.0",
            "volatile_nonatomic_schedule_immediate",
            "(param i32 i32 i32 i32)",
        ),
        ("10.0", "bytes_sink_write", three),
        ("10.0", "bytes_source_read", three),
        (
            "10.0",
            "console_log",
            "(param i32 i32 i32 i32 i32 i32 i32 i32)",
        ),
        ("10.0", "console_timer_start", two),
        ("10.0", "console_timer_end", "(param i32) (result i32)"),
        ("10.0", "identity", "(param i32)"),
        ("10.1", "bytes_source_remaining_length", two),
        ("10.2", "get_jwt", two),
        ("10.3", "procedure_sleep_until", "(param i64) (result i64)"),
        ("10.3", "procedure_start_mut_tx", "(param i32) (result i32)"),
        ("10.3", "procedure_commit_mut_tx", "(result i32)"),
        ("10.3", "procedure_abort_mut_tx", "(result i32)"),
        (
            "10.3",
            "procedure_http_request",
            "(param i32 i32 i32 i32 i32) (result i32)",
        ),
        ("10.4", "datastore_index_scan_point_bsatn", four),
        ("10.4", "datastore_delete_by_index_scan_point_bsatn", four),
        ("10.5", "datastore_clear", two),
        ("10.6", "env_get", "(param i32 i32 i32) (result i32)"),
    ];
    let imports: String = imports
        .iter()
        .map(|(version, name, ty)| {
            format!("(import \"spacetime_{version}\" \"{name}\" (func {ty}))\n")
        })
        .collect();
    Running::start(&module(&[&imports, MEMORY, DESCRIBE, REDUCER]));
}

#[test]
fn exports_are_checked() {
    assert_eq!(
        refusal(&module(&[IDENTITY, DESCRIBE, REDUCER])),
        "there should be a memory export called \"memory\" but it does not exist"
    );
    assert_eq!(
        refusal(&module(&[
            IDENTITY,
            r#"(global (export "memory") i32 (i32.const 0))"#,
            DESCRIBE,
            REDUCER
        ])),
        "there should be a memory export called \"memory\" but it does not exist"
    );
    assert_eq!(
        refusal(&module(&[IDENTITY, MEMORY, REDUCER])),
        "the module should export `__describe_module__` as (i32) -> (), but it does not export it [LC0322]"
    );
    let error = refusal(&module(&[IDENTITY, MEMORY, DESCRIBE]));
    assert!(
        error.starts_with("the module should export `__call_reducer__` as (i32, i64, "),
        "{error}"
    );
    for (export, found) in [
        (
            r#"(func (export "__preinit__1") (result i32) i32.const 1)"#,
            "() -> i32",
        ),
        (r#"(func (export "__setup__") (param i32))"#, "(i32) -> ()"),
        (
            r#"(func (export "_initialize") (param i32))"#,
            "(i32) -> ()",
        ),
        (r#"(func (export "__call_procedure__"))"#, "() -> ()"),
        (r#"(func (export "__call_view__"))"#, "() -> ()"),
        (r#"(func (export "__call_view_anon__"))"#, "() -> ()"),
        (r#"(func (export "__call_http_handler__"))"#, "() -> ()"),
    ] {
        let error = refusal(&module(&[IDENTITY, MEMORY, DESCRIBE, REDUCER, export]));
        assert!(
            error.ends_with(&format!("but it exports it as {found} [LC0322]")),
            "{error}"
        );
    }
    let global = r#"(global (export "__preinit__x") i32 (i32.const 0))"#;
    assert!(
        refusal(&module(&[IDENTITY, MEMORY, DESCRIBE, REDUCER, global])).contains("not a function")
    );
    assert!(refusal(&module(&[
        IDENTITY,
        r#"(memory (export "memory") i64 1)"#,
        DESCRIBE,
        REDUCER
    ]))
    .contains("LC0321"));
}

/// What a hostile program could use and no compiler of modules emits is refused before it is compiled.
#[test]
fn proposals_that_no_compiler_emits_are_off() {
    for (what, definition) in [
        ("a second memory", "(memory 1)"),
        ("a memory of 64 bits", "(memory i64 1)"),
        ("a shared memory", "(memory 1 1 shared)"),
        ("an exception", "(tag)"),
        (
            "a typed function reference",
            "(type $f (func)) (func (param (ref null $f)))",
        ),
        ("a type of the garbage collector", "(type (struct))"),
        (
            "wide arithmetic",
            "(func (result i64 i64) (i64.mul_wide_u (i64.const 1) (i64.const 1)))",
        ),
    ] {
        let error = refusal(&module(&[IDENTITY, MEMORY, DESCRIBE, REDUCER, definition]));
        assert!(error.contains("[LC0321]"), "{what}: {error}");
    }
    // What stable compilers can be told to emit stays.
    for definition in [
        "(func (result i32 i32) (i32.const 1) (i32.const 2))",
        "(func $f (return_call $f))",
        "(table 1 funcref) (elem declare func $g) (func $g (drop (ref.func $g)))",
        "(func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0)))",
        "(func (drop (i32.trunc_sat_f32_s (f32.const 1))) (drop (i32.extend8_s (i32.const 1))))",
        "(func (drop (i8x16.relaxed_swizzle (v128.const i64x2 0 0) (v128.const i64x2 0 0))))",
        "(global i32 (i32.add (i32.const 1) (i32.const 2)))",
    ] {
        let text = module(&[IDENTITY, MEMORY, DESCRIBE, REDUCER, definition]);
        let program = wat::parse_str(&text).expect("valid text format");
        let loaded = load(&program);
        assert!(loaded.is_ok(), "{definition}: {:?}", loaded.err());
    }
}

/// Imports for modules that write to the console and to sinks.
const TALK: &str = r#"
    (import "spacetime_10.0" "console_log" (func $console_log (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "spacetime_10.0" "bytes_sink_write" (func $sink_write (param i32 i32 i32) (result i32)))
    (func $say (param $ptr i32) (param $len i32)
        (call $console_log (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1)
            (local.get $ptr) (local.get $len)))
    (data (i32.const 16) "abcdefgh")
    (data (i32.const 32) "\05\00\00\00")
    (data (i32.const 64) "hello")"#;

#[test]
fn the_load_phase_runs_in_order() {
    let running = Running::start(&module(&[
        TALK,
        MEMORY,
        REDUCER,
        r#"(func (export "__preinit__20_a") (call $say (i32.const 18) (i32.const 1)))
           (func (export "__preinit__100") (call $say (i32.const 17) (i32.const 1)))
           (func (export "__preinit__20_B") (call $say (i32.const 19) (i32.const 1)))
           (func (export "_start") (call $say (i32.const 23) (i32.const 1)))
           (func (export "__setup__") (param i32) (result i32) (call $say (i32.const 20) (i32.const 1)) (i32.const 0))
           (func (export "_initialize") (call $say (i32.const 16) (i32.const 1)))
           (func (export "__describe_module__") (param $sink i32)
               (call $say (i32.const 21) (i32.const 1))
               (drop (call $sink_write (local.get $sink) (i32.const 64) (i32.const 32))))"#,
    ]));
    let said = ["a", "b", "d", "c", "e", "f"]
        .map(|text| format!("{{\"level\":\"Info\",\"message\":\"{text}\"}}"));
    assert_eq!(running.console.lines(), said);
    assert_eq!(running.module.describe(), b"hello");
}

#[test]
fn further_instances_are_described_once_each() {
    // Traps when it is described twice, as the Rust library does.
    let mut running = Running::start(&module(&[
        TALK,
        MEMORY,
        r#"(global $described (mut i32) (i32.const 0))
           (func (export "__describe_module__") (param $sink i32)
               (if (global.get $described) (then unreachable))
               (global.set $described (i32.const 1))
               (call $say (i32.const 16) (i32.const 1)))
           (func (export "__call_reducer__") (param i32 i64 i64 i64 i64 i64 i64 i64 i32 i32) (result i32)
               (i32.eqz (global.get $described)))"#,
    ]));
    assert_eq!(running.code(0, &[]), 0);
    assert_eq!(
        running.console.lines().len(),
        1,
        "the first instance is the one of the load"
    );
    running.replace();
    assert_eq!(running.code(0, &[]), 0);
    assert_eq!(running.console.lines().len(), 2);
}

#[test]
fn setup_can_refuse() {
    let setup = |code: &str| {
        let setup = format!(
            r#"(func (export "__setup__") (param $sink i32) (result i32)
                (drop (call $sink_write (local.get $sink) (i32.const 64) (i32.const 32))) {code})"#
        );
        module(&[TALK, MEMORY, DESCRIBE, REDUCER, &setup])
    };
    assert_eq!(
        refusal(&setup("(i32.const 1)")),
        "setup function returned an error: hello"
    );
    assert_eq!(
        refusal(&setup("(i32.const 7)")),
        "setup function returned the unknown code 7 [LC0325]"
    );
    Running::start(&setup("(i32.const 0)"));
}

#[test]
fn database_calls_of_the_load_phase_answer_2_and_identity_works() {
    Running::start(&module(&[
        IDENTITY,
        r#"(import "spacetime_10.0" "table_id_from_name" (func $table (param i32 i32 i32) (result i32)))
           (import "spacetime_10.3" "procedure_commit_mut_tx" (func $commit (result i32)))"#,
        MEMORY,
        DESCRIBE,
        REDUCER,
        r#"(func (export "__preinit__1")
            (if (i32.ne (call $table (i32.const 8) (i32.const 1) (i32.const 16)) (i32.const 2)) (then unreachable))
            (if (i32.ne (call $commit) (i32.const 18)) (then unreachable))
            (call $identity (i32.const 32))
            (if (i64.ne (i64.load (i32.const 32)) (i64.const 0x191a1b1c1d1e1f20)) (then unreachable))
            (if (i64.ne (i64.load (i32.const 56)) (i64.const 0x0102030405060708)) (then unreachable)))"#,
    ]));
}

#[test]
fn the_load_phase_has_limits() {
    let with = |export: &str, body: &str| {
        refusal(&module(&[
            IDENTITY,
            MEMORY,
            DESCRIBE,
            REDUCER,
            &format!("(func $x (export \"{export}\") {body})"),
        ]))
    };
    assert_eq!(
        with("__preinit__x", "(loop br 0)"),
        "the module took too long to load and was stopped: load-ms-max = 100 [LC0721] (in `__preinit__x`)"
    );
    assert_eq!(
        with("_initialize", "call $x"),
        "the module's call stack is exhausted: stack-bytes-max = 524288 [LC0723] (in `_initialize`)"
    );
    let error = with("__preinit__x", "unreachable");
    assert!(
        error.starts_with("the module failed while loading, in `__preinit__x`: wasm trap: "),
        "{error}"
    );
    let looping = module(&[
        IDENTITY,
        MEMORY,
        DESCRIBE,
        REDUCER,
        "(func $s (loop br 0)) (start $s)",
    ]);
    assert!(refusal(&looping).contains("[LC0721]"));
    let calling = module(&[
        IDENTITY,
        MEMORY,
        DESCRIBE,
        REDUCER,
        "(func $s (call $identity (i32.const 1))) (start $s)",
    ]);
    assert!(refusal(&calling).contains("the start function may not call the host"));
    let error = refusal(&module(&[
        IDENTITY,
        r#"(memory (export "memory") 100)"#,
        DESCRIBE,
        REDUCER,
    ]));
    assert!(
        error.contains("memory-bytes-max = 4194304 [LC0722]"),
        "{error}"
    );
    let error = refusal(&module(&[
        IDENTITY,
        MEMORY,
        "(table 10000000 funcref)",
        DESCRIBE,
        REDUCER,
    ]));
    assert!(error.contains("[LC0323]"), "{error}");
    let error = refusal(&module(&[
        IDENTITY,
        MEMORY,
        DESCRIBE,
        REDUCER,
        r#"(data (i32.const 65535) "ab")"#,
    ]));
    assert!(error.contains("[LC0323]"), "{error}");
}

#[test]
fn the_load_phase_brings_its_own_stack() {
    let recursive = r#"(func $f (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))
           (func (export "__preinit__1") (drop (call $f (i32.const 0))))"#;
    let program =
        wat::parse_str(module(&[IDENTITY, MEMORY, DESCRIBE, REDUCER, recursive])).unwrap();
    let stack_bytes_max = 16 << 20;
    let run = move || {
        let engine = WasmEngine::new(WasmEngineOptions {
            stack_bytes_max,
            ..WasmEngineOptions::default()
        })
        .unwrap();
        let limits = HostLimits {
            stack_bytes_max,
            ..HostLimits::default()
        };
        let deep = engine
            .load(&program, &config(limits, Arc::default()))
            .err()
            .unwrap()
            .to_string();
        let shallow = engine
            .load(&program, &config(HostLimits::default(), Arc::default()))
            .err()
            .unwrap()
            .to_string();
        (deep, shallow)
    };
    let (deep, shallow) = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(
        deep,
        "the module's call stack is exhausted: stack-bytes-max = 16777216 [LC0723] (in `__preinit__1`)"
    );
    assert!(
        shallow.contains("made for stacks of 16777216 bytes") && shallow.ends_with("[LC0320]"),
        "{shallow}"
    );
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]

    /// A program with bytes changed loads or is refused; it never takes the process down.
    #[test]
    fn damaged_programs_never_panic(changes in proptest::collection::vec((0usize..400, 0u8..=255), 1..4)) {
        let mut program = wat::parse_str(module(&[TALK, MEMORY, DESCRIBE, REDUCER])).unwrap();
        for (position, byte) in changes {
            let position = position % program.len();
            program[position] = byte;
        }
        if let Ok(module) = load(&program) {
            let _ = module.instantiate(HostEnv::new(config(small_limits(), Arc::default())));
        }
    }
}
