//! Host calls of compiled code that fail: V8's header says that they should neither throw nor run JavaScript, and ours do both
//! (`src/v8/fast.rs`). These tests show that it is safe in the version of V8 that this build has.

use lightcone_host::{HostLimits, ReducerOutcome};

use crate::common::{script, small_limits, Running};

/// The version for which the reasons in `src/v8/fast.rs` were read in V8's source. Before it is raised: read
/// `FastApiCallBuilder::Build` (`compiler/fast-api-calls.cc`), `kArchCallCFunction` in the code generators and `JSEntry` in the
/// built-ins again, and run the tests below.
const REVIEWED: &str = "V8 15.0.";

#[test]
fn the_version_is_the_one_that_was_reviewed() {
    let name = lightcone_host_js::engine_name().unwrap();
    assert!(
        name.starts_with(REVIEWED),
        "{name}: see REVIEWED in {}",
        file!()
    );
}

/// What every failing call runs: it makes garbage, collects it, calls the host again, fails again, and goes deep.
const DEFINITIONS: &str = "const buf = new ArrayBuffer(64), view = new Uint8Array(buf), kept = [];\n\
    let made = 0, depth = 0, table = 0, index = 0;\n\
    const deep = (n) => n === 0 ? 0 : deep(n - 1) + 1;\n\
    class Made extends HostCallError {\n\
      constructor(code, message) {\n\
        super(code, message);\n\
        made++;\n\
        this.extra = Array.from({ length: 20 }, (_, i) => ({ i, made }));\n\
        if (made % 64 === 0) kept[made / 64 % 32] = this;\n\
        if (made % 501 === 0) for (let i = 0; i < 3000; i++) kept[32 + i % 8] = new Array(64).fill({ i });\n\
        if (made % 97 === 0) deep(300);\n\
        if (made % 101 === 0) eval('var x' + made + ' = 1; x' + made);\n\
        if (made % 53 === 0 && depth < 4) { depth++; try { hot(made, { x: made }, made); } finally { depth--; } }\n\
        if (made % 211 === 0) sys.table_id_from_name('person');\n\
        if (made % 509 === 0) { const endless = () => endless() + 1; try { endless(); } catch { } }\n\
      }\n\
    }\n\
    const call = (i) => {\n\
      switch (i % 8) {\n\
        case 0: view.set([5,0,0,0,0,0,0,0, 1,0,0,0, 65, 9]); return sys.datastore_insert_bsatn(table, buf, 14);\n\
        case 1: return sys.datastore_insert_bsatn(table, buf, 65);\n\
        case 2: return sys.datastore_insert_bsatn(table, buf, 1.5);\n\
        case 3: return sys.row_iter_bsatn_advance(999999, buf);\n\
        case 4: return sys.row_iter_bsatn_close(999999);\n\
        case 5: return sys.datastore_index_scan_point_bsatn(77777, buf, 8);\n\
        case 6: return sys.datastore_update_bsatn(table, 77777, buf, 14);\n\
        default: return sys.datastore_table_scan_bsatn(77777);\n\
      }\n\
    };\n\
    const hot = (i, a, b) => {\n\
      const own = { i, text: 'x' + i }, half = i * 0.5; let result = 'none', ended = 0;\n\
      try { result = call(i); }\n\
      catch (e) { result = e instanceof Made ? e.code + e.extra.length : e instanceof RangeError ? 'range' : e instanceof TypeError ? 'type' : String(e); }\n\
      finally { ended = own.i + 1; }\n\
      if (own.i !== i || own.text !== 'x' + i || half !== i * 0.5 || a.x !== b || ended !== i + 1) throw new Error('changed at ' + i);\n\
      return result;\n\
    };";

fn running(body: &str, limits: HostLimits) -> Running {
    let program = script(DEFINITIONS, body).replace(
        "(code) => class extends HostCallError { constructor(m) { super(code, m); } }",
        "(code) => class extends Made { constructor(m) { super(code, m); } }",
    );
    Running::loaded(&program, limits)
}

#[test]
fn failing_calls_of_compiled_code_leave_it_whole() {
    let limits = HostLimits {
        call_ms_max: 300_000,
        memory_bytes_max: 256 << 20,
        ..small_limits()
    };
    let mut module = running(
        "table = sys.table_id_from_name('person'); const expected = ['32', 'range', 'type', '26', '26', '25', '25', '24'];\n\
         view.set([5,0,0,0,0,0,0,0, 1,0,0,0, 65, 7]); sys.datastore_insert_bsatn(table, buf, 14);\n\
         for (let i = 0; i < 40000; i++) {\n\
           const result = String(hot(i, { x: i }, i));\n\
           if (result !== expected[i % 8]) throw new Error(i + ': ' + result);\n\
         }\n\
         log('done', made > 20000, sys.datastore_table_row_count(table));",
        limits,
    );
    let before = lightcone_host_js::v8::fast_failures();
    assert_eq!(module.logs(), ["done true 1"]);
    let failures = lightcone_host_js::v8::fast_failures() - before;
    assert!(
        failures > 10_000,
        "compiled code made {failures} failing calls"
    );
}

/// The end of a call that compiled code cannot catch.
#[test]
fn compiled_code_is_stopped_in_a_failing_call() {
    let limits = HostLimits {
        call_ms_max: 300_000,
        iterators_max: 3,
        ..small_limits()
    };
    let mut module = running(
        "table = sys.table_id_from_name('person');\n\
         const scan = (close) => { try { const it = sys.datastore_table_scan_bsatn(table); if (close) sys.row_iter_bsatn_close(it); return it; }\n\
           catch (e) { log('caught', e); } finally { if (!close && finals++ > 3) log('finally'); } };\n\
         let finals = 0;\n\
         for (let i = 0; i < 30000; i++) scan(true);\n\
         if (id === 0) { for (let i = 0; i < 10; i++) scan(false); log('after'); }\n\
         log('alive');",
        limits,
    );
    let before = lightcone_host_js::v8::fast_failures();
    for _ in 0..20 {
        let message = module.fatal(0);
        assert!(message.contains("iterators-max = 3"), "{message}");
        assert_eq!(module.console.take(), [""; 0]);
        assert!(!module.instance.is_poisoned());
        assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
        assert_eq!(module.console.messages(), ["Info: alive"]);
    }
    assert!(lightcone_host_js::v8::fast_failures() > before);
}
