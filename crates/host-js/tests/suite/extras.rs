//! What this host offers beyond the standard functions (docs/js-abi.md).

use lightcone_host::ReducerOutcome;

use crate::common::{script, small_limits, Running};

const EXTRAS: &str = "const fast = globalThis[Symbol.for('lightcone.sys.1')];\n\
    const buf = new ArrayBuffer(64), view = new Uint8Array(buf);";

#[test]
fn a_point_is_read_in_one_call() {
    let mut module = Running::script_with(
        EXTRAS,
        "const table = sys.table_id_from_name('person'), index = sys.index_id_from_name('person_id_idx_btree');\n\
         view.set([5,0,0,0,0,0,0,0, 3,0,0,0, 98,111,98, 7]); sys.datastore_insert_bsatn(table, buf, 16);\n\
         view.set([5,0,0,0,0,0,0,0, 99]); log(fast.point_read(index, buf, 8), view.subarray(0, 17));\n\
         view.set([6,0,0,0,0,0,0,0]); log(fast.point_read(index, buf, 8), view[0]);\n\
         const small = new Uint8Array([5,0,0,0,0,0,0,0]); log(fast.point_read(index, small.buffer, 8), small);\n\
         log(attempt(() => fast.point_read(77777, buf, 8)));\n\
         log(attempt(() => fast.point_read(index, buf, 7)));\n\
         log(attempt(() => fast.point_read(index, buf, 65)));\n\
         log(attempt(() => fast.point_read(index, view, 8)));\n\
         log(typeof fast.row_update, fast.version, Object.keys(globalThis).length);",
        small_limits(),
    );
    assert_eq!(
        module.logs(),
        [
            "16 5,0,0,0,0,0,0,0,3,0,0,0,98,111,98,7,0",
            "0 6",
            "-16 5,0,0,0,0,0,0,0",
            "errno 5 No such index",
            "errno 3 Couldn't decode the BSATN to the expected type",
            "RangeError: length argument was out of bounds for `ArrayBuffer`",
            "TypeError: Expected `ArrayBuffer`, got Uint8Array",
            "function 1 0",
        ]
    );
}

#[test]
fn the_direct_hook_gets_calls_in_the_buffer() {
    let program = script(EXTRAS, "log('standard', args.byteLength);").replace(
        "__describe_module__:",
        "__lightcone_call_reducer__(id, length) {\n\
           const call = new DataView(fast.callBuffer);\n\
           log(id, length, call.getBigUint64(0, true), call.getBigUint64(32, true), call.getBigInt64(48, true), length && call.getUint8(64 + length - 1), this === hooks);\n\
           if (id === 9) structuredCloneLike();\n\
           if (id === 8) throw new SenderError('direct');\n\
           if (id === 7) fast.callBuffer.transfer();\n\
         },\n__describe_module__:",
    );
    let mut module = Running::load(program.as_bytes(), small_limits()).unwrap();
    assert_eq!(module.logs(), ["0 0 4660 7 1700000000000000 0 true"]);
    assert_eq!(module.call(1, &[3; 4032]), ReducerOutcome::Ok);
    assert_eq!(module.call(1, &[3; 4033]), ReducerOutcome::Ok);
    assert_eq!(
        module.console.messages(),
        [
            "Info: 1 4032 4660 7 1700000000000000 3 true",
            "Info: standard 4033"
        ]
    );
    assert_eq!(
        module.call(8, &[]),
        ReducerOutcome::UserError("direct".into())
    );
    assert!(module.fatal(9).contains("ReferenceError"));
    module.console.take();
    assert_eq!(module.call(7, &[]), ReducerOutcome::Ok);
    assert_eq!(module.call(1, &[1]), ReducerOutcome::Ok);
    assert_eq!(
        module.console.messages().last().unwrap(),
        "Info: standard 1"
    );
}

#[test]
fn a_direct_hook_that_is_no_function_is_none() {
    let program = script("", "log('standard', args.byteLength);").replace(
        "__describe_module__:",
        "__lightcone_call_reducer__: 5, __lightcone_call_procedure__: {},\n__describe_module__:",
    );
    let mut module = Running::load(program.as_bytes(), small_limits()).unwrap();
    assert_eq!(module.logs(), ["standard 0"]);
}

#[test]
fn texts_are_read_and_written_in_place() {
    let mut module = Running::script_with(
        EXTRAS,
        "if (!fast.text_read) { log('standard functions only'); } else {\n\
         log(fast.text_write('caf\\u00e9', buf, 2), view.subarray(0, 8));\n\
         log(fast.text_read(buf, 2, 7), fast.text_read(buf, 2, 5), fast.text_read(buf, 64, 64) === '');\n\
         log(fast.text_read(buf, 2, 6).codePointAt(3).toString(16));\n\
         log(fast.text_write('x'.repeat(62), buf, 2), fast.text_write('x'.repeat(63), buf, 2), view[63]);\n\
         log(fast.text_write('\\u{1f600}\\ud800', buf, 0), view.subarray(0, 8));\n\
         log(attempt(() => fast.text_read(buf, 3, 2)));\n\
         log(attempt(() => fast.text_read(buf, 0, 65)));\n\
         log(attempt(() => fast.text_write('', buf, 65)));\n\
         log(attempt(() => fast.text_read(view, 0, 1)));\n\
         log(attempt(() => fast.text_write(5, buf, 0))); }",
        small_limits(),
    );
    let logs = module.logs();
    if logs == ["standard functions only"] {
        return;
    }
    assert_eq!(
        logs,
        [
            "5 0,0,99,97,102,195,169,0",
            "caf\u{e9} caf true",
            "fffd",
            "62 -63 120",
            "7 240,159,152,128,239,191,189,120",
            "RangeError: length argument was out of bounds for `ArrayBuffer`",
            "RangeError: length argument was out of bounds for `ArrayBuffer`",
            "RangeError: length argument was out of bounds for `ArrayBuffer`",
            "TypeError: Expected `ArrayBuffer`, got Uint8Array",
            "TypeError: Expected `string`, got Number",
        ]
    );
}
