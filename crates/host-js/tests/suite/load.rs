//! Evaluation, imports, hook lookup, describe (§1, §3, §6.1).

use crate::common::{refusal, script, Running};

#[test]
fn programs_that_are_no_module_are_refused() {
    let error = Running::load(b"\xff", crate::common::small_limits())
        .err()
        .unwrap();
    assert!(error.to_string().contains("must be UTF-8"), "{error}");
    assert!(refusal("let let = 1;").contains("SyntaxError"));
    assert!(refusal("throw new Error('top');").contains("Error: top"));
    assert!(refusal("export default await new Promise(() => {});")
        .contains("module has top-level await and is pending"));
}

#[test]
fn imports_that_do_not_resolve_are_named() {
    assert!(refusal("import 'lodash';").contains("Could not find module \"lodash\""));
    assert!(refusal("import 'spacetime:sys@2';")
        .contains("Invalid version in module spec \"spacetime:sys@2\""));
    assert!(refusal("import 'spacetime:sys@2.9';").contains(
        "It requires sys module v2.9, but that version is not supported by the database."
    ));
    assert!(refusal("import { nothing } from 'spacetime:sys@2.0';").contains("SyntaxError"));
    assert!(
        refusal("import { datastore_clear } from 'spacetime:sys@2.0';").contains("SyntaxError")
    );
}

#[test]
fn dynamic_imports_do_not_work() {
    let mut module =
        Running::script("import('spacetime:sys@2.0').catch((e) => log('no import')); ");
    assert_eq!(module.logs(), ["no import"]);
}

#[test]
fn what_hooks_need_is_said() {
    let hooks = "import { moduleHooks } from 'spacetime:sys@2.0';";
    for (program, expected) in [
        (
            "export const x = 1;",
            "must export schema as default export",
        ),
        (
            "export default null;",
            "must export schema as default export",
        ),
        ("export default 3;", "default export is not a Schema object"),
        (
            "export default {};",
            "Expected hooks function, got undefined",
        ),
        (
            "export default { [Symbol.for('SpacetimeDB.moduleHooks.v2')]() {} };",
            "Expected hooks function, got undefined",
        ),
        (
            "export default { [moduleHooks]() {} };",
            "Expected hooks object, got undefined",
        ),
        (
            "export default { [moduleHooks]() { return {}; } };",
            "Expected module function hook `__describe_module__`, got undefined",
        ),
        (
            "export default { [moduleHooks]() { throw new Error('exporting x'); } };",
            "Error: exporting x",
        ),
    ] {
        let text = refusal(&format!("{hooks}\n{program}"));
        assert!(text.contains(expected), "{program}: {text}");
    }
}

#[test]
fn hooks_are_asked_for_once_with_the_namespace() {
    let program = script("let count = 0;", "log(count, seen);").replace(
        "[sys.moduleHooks]() {",
        "[sys.moduleHooks](namespace) { count++; seen = [namespace.default === this, namespace.other];",
    );
    let program = format!("let seen; export const other = 5;\n{program}");
    let mut module = Running::load(program.as_bytes(), crate::common::small_limits()).unwrap();
    assert_eq!(module.logs(), ["1 true,5"]);
}

#[test]
fn a_failing_description_fails_the_publish_with_its_stack() {
    let program = script("", "").replace(
        "__describe_module__: () => new Uint8Array(0)",
        "__describe_module__: function described() { throw new RangeError('no'); }",
    );
    let text = refusal(&program);
    assert!(text.contains("RangeError: no"), "{text}");
    assert!(text.contains("at described (spacetimedb_module:"), "{text}");
}

#[test]
fn host_functions_work_while_the_module_is_evaluated() {
    let program = script(
        "const early = [sys.identity(), attempt(() => sys.table_id_from_name('person'))]; sys.console_log(1, 'early');",
        "log(...early);",
    );
    let mut module = Running::load(program.as_bytes(), crate::common::small_limits()).unwrap();
    assert_eq!(
        module.logs().last().unwrap(),
        "49664 Error: ABI call can only be made while in a transaction"
    );
}

#[test]
fn the_symbol_is_not_in_the_registry() {
    let mut module =
        Running::script("log(sys.moduleHooks.description, Symbol.keyFor(sys.moduleHooks));");
    assert_eq!(module.logs(), ["SpacetimeDB.moduleHooks.v2 undefined"]);
}

/// Damaged programs are refused or, where the damage does not matter, loaded. Nothing else happens.
#[test]
fn damaged_programs_are_refused_or_loaded() {
    const MARKS: &[u8] = b"{}()[];,.`'\"\\/*=+-#@!?<>&|^~%:0aZ \n";
    let program = crate::common::bundle("minimal");
    let code = program
        .windows(21)
        .position(|window| window == b"//# sourceMappingURL=")
        .map_or(&program[..], |end| &program[..end]);
    let mut state = 7_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let mut refused = 0;
    for round in 0..120 {
        let mut damaged = code.to_vec();
        let at = random(damaged.len());
        let length = random(40).min(damaged.len() - at);
        match round % 4 {
            0 => damaged.truncate(at),
            1 => drop(damaged.drain(at..at + length)),
            2 => {
                let again = damaged[at..at + length].to_vec();
                damaged.splice(at..at, again);
            }
            _ => {
                for _ in 0..20 {
                    let at = random(damaged.len());
                    damaged[at] = MARKS[random(MARKS.len())];
                }
            }
        }
        if Running::load(&damaged, crate::common::small_limits()).is_err() {
            refused += 1;
        }
    }
    assert!(refused > 60, "{refused}");
}
