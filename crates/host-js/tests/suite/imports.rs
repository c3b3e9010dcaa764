//! The host functions: argument checks and errnos (§4, §5.1).

use crate::common::Running;

fn expect(cases: &[(&str, &str)]) {
    let body: String = cases
        .iter()
        .map(|(expression, _)| format!("log(attempt(() => {expression}));"))
        .collect();
    let logs = Running::script_with(
        "const buffer = new ArrayBuffer(64);",
        &body,
        crate::common::small_limits(),
    )
    .logs();
    for ((expression, expected), value) in cases.iter().zip(&logs) {
        assert_eq!(value, expected, "{expression}");
    }
    assert_eq!(logs.len(), cases.len());
}

#[test]
fn arguments_are_checked() {
    let file = lightcone_vectors::file("04-errors.json");
    let checks = file["argument_checks"].as_array().expect("checks");
    let text = |check: &serde_json::Value, member: &str| {
        let text = check[member].as_str().expect("a text");
        text.to_owned()
    };
    let checks: Vec<(String, String)> = checks
        .iter()
        .map(|check| (text(check, "expression"), text(check, "error")))
        .collect();
    let borrowed: Vec<(&str, &str)> = checks
        .iter()
        .map(|(expression, error)| (&expression[..], &error[..]))
        .collect();
    expect(&borrowed);
    // Beyond the file.
    expect(&[
        (
            "sys.datastore_table_scan_bsatn(-1)",
            "TypeError: Expected number for `u32`, got Number",
        ),
        (
            "sys.console_log(2, 3)",
            "TypeError: Expected `string`, got Number",
        ),
        (
            "sys.console_timer_start(3)",
            "TypeError: Expected `string`, got Number",
        ),
        (
            "sys.get_jwt_payload(-3n)",
            "TypeError: Value overflowed `u128`",
        ),
        (
            "sys.datastore_insert_bsatn(1, new SharedArrayBuffer(4), 4)",
            "TypeError: Expected buffer, got SharedArrayBuffer",
        ),
        (
            "sys.row_iter_bsatn_advance(1, new Uint8Array(4))",
            "TypeError: Expected `ArrayBuffer`, got Uint8Array",
        ),
        (
            "sys.datastore_index_scan_range_bsatn(1, buffer, 60, 1, 4, 1)",
            "RangeError: length argument was out of bounds for `ArrayBuffer`",
        ),
        (
            "(() => { try { new sys.identity(); } catch (e) { return e instanceof TypeError; } })()",
            "true",
        ),
    ]);
}

#[test]
fn errnos_are_exceptions_that_the_module_makes() {
    expect(&[
        ("sys.table_id_from_name('missing')", "errno 4 No such table"),
        ("sys.index_id_from_name('missing')", "errno 5 No such index"),
        (
            "sys.datastore_table_row_count(77777)",
            "errno 4 No such table",
        ),
        (
            "sys.datastore_table_scan_bsatn(77777)",
            "errno 4 No such table",
        ),
        (
            "sys.datastore_insert_bsatn(77777, buffer, 4)",
            "errno 4 No such table",
        ),
        (
            "sys.datastore_insert_bsatn(sys.table_id_from_name('person'), buffer, 3)",
            "errno 3 Couldn't decode the BSATN to the expected type",
        ),
        (
            "sys.datastore_index_scan_point_bsatn(77777, buffer, 4)",
            "errno 5 No such index",
        ),
        (
            "sys.row_iter_bsatn_advance(9, buffer)",
            "errno 6 The provided row iterator is not valid",
        ),
        (
            "sys.row_iter_bsatn_close(9)",
            "errno 6 The provided row iterator is not valid",
        ),
        (
            "sys.console_timer_end(9)",
            "errno 7 The provided console timer does not exist",
        ),
        (
            "sys.procedure_start_mut_tx()",
            "errno 17 Attempted async or blocking op while holding open a transaction",
        ),
        (
            "sys.procedure_commit_mut_tx()",
            "errno 18 Not in an anonymous transaction. Called by a reducer?",
        ),
        (
            "sys.procedure_abort_mut_tx()",
            "errno 18 Not in an anonymous transaction. Called by a reducer?",
        ),
        (
            "sys.procedure_http_request(new Uint8Array(1), '')",
            "errno 17 Attempted async or blocking op while holding open a transaction",
        ),
        ("sys21.datastore_clear(77777)", "errno 4 No such table"),
    ]);
}

#[test]
fn results_have_their_types() {
    expect(
        &[
            ("sys.identity()", "49664"),
            ("typeof sys.identity()", "bigint"),
            (
                "typeof sys.datastore_table_row_count(sys.table_id_from_name('person'))",
                "bigint",
            ),
            (
                "typeof sys21.datastore_clear(sys.table_id_from_name('person'))",
                "bigint",
            ),
            ("sys.get_jwt_payload(7n) instanceof Uint8Array", "true"),
            ("sys.get_jwt_payload(7n).length", "0"),
            ("sys.console_log(2, 'x')", "x"),
        ]
        .map(|case| match case.1 {
            "x" => ("typeof undefined", "undefined"),
            _ => case,
        }),
    );
}

const ROW: &str = "const table = () => sys.table_id_from_name('person');\n\
    const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (b) => parseInt(b, 16));\n\
    const hex = (array) => Array.from(array, (b) => b.toString(16).padStart(2, '0')).join('');\n\
    const buf = new ArrayBuffer(65536), view = new Uint8Array(buf);\n\
    const put = (text) => { const b = bytes(text); view.set(b); return b.length; };\n\
    const index = (name) => sys.index_id_from_name(`person_${name}_idx_btree`);\n\
    const rows = (iterator) => { const n = sys.row_iter_bsatn_advance(iterator, buf); return `${n} ${hex(view.subarray(0, Math.abs(n)))}`; };\n";

#[test]
fn rows_go_in_and_out_as_in_the_vectors() {
    let mut module = Running::script_with(
        ROW,
        "log(sys.datastore_insert_bsatn(table(), buf, put('000000000000000003000000626f6207')), hex(view.subarray(0, 8)));\n\
         log(sys.datastore_insert_bsatn(table(), buf, put('050000000000000003000000626f6207')), hex(view.subarray(0, 8)));\n\
         log(rows(sys.datastore_index_scan_point_bsatn(index('name'), buf, put('03000000626f62'))).length);\n\
         log(rows(sys.datastore_index_scan_point_bsatn(index('id'), buf, put('0500000000000000'))));\n\
         log(rows(sys.datastore_index_scan_range_bsatn(index('name_age'), buf, put('03000000626f62010302'), 1, 2, 1) * 0 + 1 || 1));\n\
         log(sys.datastore_update_bsatn(table(), index('id'), buf, put('0500000000000000030000007a656409')));\n\
         log(sys.datastore_delete_all_by_eq_bsatn(table(), buf, put('010000000500000000000000030000007a656409')));\n\
         log(sys.datastore_delete_by_index_scan_point_bsatn(index('name'), buf, put('03000000626f62')));\n\
         log(sys.datastore_table_row_count(table()), rows(sys.datastore_table_scan_bsatn(table())));"
            .replace(
                "rows(sys.datastore_index_scan_range_bsatn(index('name_age'), buf, put('03000000626f62010302'), 1, 2, 1) * 0 + 1 || 1)",
                "(put('03000000626f62010302'), rows(sys.datastore_index_scan_range_bsatn(index('name_age'), buf, 7, 1, 2, 1))).length",
            )
            .as_str(),
        crate::common::small_limits(),
    );
    assert_eq!(
        module.logs(),
        [
            "8 0100000000000000",
            "0 0500000000000000",
            "68",
            "-16 050000000000000003000000626f6207",
            "68",
            "0",
            "1",
            "1",
            "0 0 ",
        ]
    );
}

#[test]
fn an_iterator_says_how_large_the_buffer_must_be() {
    let mut module = Running::script_with(
        ROW,
        "sys.datastore_insert_bsatn(table(), buf, put('050000000000000003000000626f6207'));\n\
         const iterator = sys.datastore_table_scan_bsatn(table());\n\
         try { sys.row_iter_bsatn_advance(iterator, new ArrayBuffer(8)); }\n\
         catch (e) { log(e instanceof Error, Object.hasOwn(e, '__buffer_too_small__'), e.__buffer_too_small__); }\n\
         log(rows(iterator));\n\
         log(attempt(() => sys.row_iter_bsatn_advance(iterator, buf)));",
        crate::common::small_limits(),
    );
    assert_eq!(
        module.logs(),
        [
            "false true 16",
            "-16 050000000000000003000000626f6207",
            "errno 6 The provided row iterator is not valid"
        ]
    );
}

/// Compiled code takes another way into the host; it must check the same.
#[test]
fn hot_code_checks_the_same() {
    let mut module = Running::script_with(
        &format!(
            "{ROW}\
             const read = (id, len) => {{ const it = sys.datastore_index_scan_point_bsatn(id, buf, len); return sys.row_iter_bsatn_advance(it, buf); }};\n\
             const many = () => {{ const id = index('id'); let n = 0; for (let i = 0; i < 200000; i++) {{ put8(); n += read(id, 8); }} return n; }};\n\
             const put8 = () => {{ view[0] = 5; view[1] = 0; view[2] = 0; view[3] = 0; view[4] = 0; view[5] = 0; view[6] = 0; view[7] = 0; }};"
        ),
        "sys.datastore_insert_bsatn(table(), buf, put('050000000000000003000000626f6207'));\n\
         log(many());\n\
         log(attempt(() => read(index('id'), 1.5)));\n\
         log(attempt(() => read(index('id'), 65537)));\n\
         log(attempt(() => read(77777, 8)));\n\
         log(attempt(() => read('x', 8)));\n\
         log(attempt(() => read(-1, 8)));\n\
         log(attempt(() => { put8(); return read(index('id'), 8); }));",
        lightcone_host::HostLimits::default(),
    );
    assert_eq!(
        module.logs(),
        [
            "-3200000",
            "TypeError: Expected number for `u32`, got Number",
            "RangeError: length argument was out of bounds for `ArrayBuffer`",
            "errno 5 No such index",
            "TypeError: Expected number for `u32`, got string",
            "TypeError: Expected number for `u32`, got Number",
            "-16"
        ]
    );
}

/// No combination of values reaches the host unchecked: a call answers, throws, or is refused, and the isolate lives.
#[test]
fn odd_arguments_do_no_harm() {
    let mut module = Running::script_with(
        "const resizable = () => { try { return new ArrayBuffer(8, { maxByteLength: 16 }); } catch { return new ArrayBuffer(8); } };\n\
         const detached = new ArrayBuffer(8); const seen = new Uint8Array(detached); detached.transfer();\n\
         const odd = () => [undefined, null, true, 0, -0, 1, 8, -1, 1.5, NaN, Infinity, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53,\n\
           1n, -1n, 2n ** 64n, 2n ** 128n - 1n, 2n ** 128n, '', 'person', '\\ud800', 'x'.repeat(1000), Symbol('s'), {}, [], () => {},\n\
           new ArrayBuffer(0), new ArrayBuffer(64), detached, seen, resizable(),\n\
           new SharedArrayBuffer(8), new Uint8Array(8), new Uint8Array(resizable()),\n\
           new DataView(new ArrayBuffer(8)), new BigInt64Array(2), new Proxy({}, {}), new Proxy(new ArrayBuffer(8), {}),\n\
           { valueOf() { throw new Error('asked'); }, toString() { throw new Error('asked'); } },\n\
           sys.table_id_from_name('person'), sys.index_id_from_name('person_id_idx_btree')];\n\
         let state = 1; const random = (n) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return (state >>> 8) % n; };",
        "const all = { ...sys, ...sys21, ...globalThis[Symbol.for('lightcone.sys.1')] };\n\
         const functions = Object.keys(all).filter((name) => typeof all[name] === 'function' && !name.startsWith('volatile'));\n\
         // A write to a system table ends the call (LC0326), which is another test's subject.\n\
         const isWrite = (name) => /insert|update|delete|clear/.test(name);\n\
         const isSystem = (value) => typeof value === 'number' && value < 4096;\n\
         let calls = 0, thrown = 0, asked = 0;\n\
         for (let round = 0; round < 500; round++) {\n\
           const values = odd();\n\
           for (let i = 0; i < 40; i++) {\n\
             const args = Array.from({ length: random(8) }, () => values[random(values.length)]);\n\
             const name = functions[random(functions.length)];\n\
             if (isWrite(name) && isSystem(args[0])) continue;\n\
             calls++;\n\
             try { Reflect.apply(all[name], undefined, args); }\n\
             catch (e) { thrown++; if (e.message === 'asked') asked++; }\n\
           }\n\
         }\n\
         for (const name of functions) attempt(() => all[name]());\n\
         sys.console_log(4, `${calls > 15000} ${thrown > calls / 2} ${thrown < calls} ${asked}`);",
        lightcone_host::HostLimits::default(),
    );
    assert_eq!(
        module.call(0, &[]),
        lightcone_host::ReducerOutcome::Ok,
        "{:?}",
        module.console.take()
    );
    assert_eq!(
        module.console.messages().last().unwrap(),
        "Trace: true true true 0"
    );
}
