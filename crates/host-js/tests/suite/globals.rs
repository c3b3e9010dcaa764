//! The global environment (§2).

use crate::common::Running;

/// Runs expressions and gives their values as strings.
fn values(expressions: &[&str]) -> Vec<String> {
    let body: String = expressions
        .iter()
        .map(|expression| format!("log(attempt(() => ({expression})));"))
        .collect();
    Running::script(&body).logs()
}

#[test]
fn text_encoder_and_decoder() {
    let cases = [
        ("new TextEncoder().encoding", "utf-8"),
        (
            "new TextEncoder().encode('aé\\u{1F600}')",
            "97,195,169,240,159,152,128",
        ),
        ("new TextEncoder().encode()", ""),
        ("new TextEncoder().encode('\\ud800')", "239,191,189"),
        ("new TextEncoder().encode(12)", "49,50"),
        ("new TextDecoder('latin1')", "RangeError"),
        ("new TextDecoder('utf-8', { ignoreBOM: true })", "TypeError"),
        ("new TextDecoder('utf-8', { fatal: true }).fatal", "true"),
        (
            "[new TextDecoder().fatal, new TextDecoder().ignoreBOM, new TextDecoder().encoding]",
            "false,false,utf-8",
        ),
        (
            "new TextDecoder().decode(new Uint8Array([195, 169, 97]))",
            "éa",
        ),
        (
            "new TextDecoder().decode(new Uint8Array([1, 2, 97, 98, 99]).subarray(2, 4))",
            "ab",
        ),
        ("new TextDecoder().decode(new Uint8Array([97]).buffer)", "a"),
        (
            "new TextDecoder().decode(new DataView(new ArrayBuffer(0)))",
            "",
        ),
        (
            "new TextDecoder().decode(new Uint8Array([97, 255, 98]))",
            "a\u{fffd}b",
        ),
        (
            "new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97])).length",
            "2",
        ),
        (
            "new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255]))",
            "TypeError",
        ),
        ("new TextDecoder().decode('text')", "TypeError"),
        (
            "new TextDecoder().decode(new Uint8Array(1), { stream: true })",
            "TypeError",
        ),
    ];
    let expressions: Vec<_> = cases.iter().map(|(expression, _)| *expression).collect();
    for ((expression, expected), value) in cases.iter().zip(values(&expressions)) {
        let value = match expected.ends_with("Error") {
            true => value.split(':').next().unwrap().to_owned(),
            false => value,
        };
        assert_eq!(value, *expected, "{expression}");
    }
}

#[test]
fn math_random_is_not_there() {
    assert_eq!(
        values(&[
            "Math.random()",
            "Object.getOwnPropertyDescriptor(Math, 'random').enumerable",
        ]),
        [
            "TypeError: Math.random is not available in SpacetimeDB modules. Use ctx.random instead.",
            "false"
        ]
    );
}

#[test]
fn what_is_absent_is_absent() {
    let names = [
        "setTimeout",
        "setInterval",
        "setImmediate",
        "queueMicrotask",
        "fetch",
        "crypto",
        "process",
        "Buffer",
        "require",
    ];
    let expressions: Vec<_> = names.iter().map(|name| format!("typeof {name}")).collect();
    let expressions: Vec<_> = expressions.iter().map(String::as_str).collect();
    assert!(values(&expressions)
        .iter()
        .all(|value| value == "undefined"));
}

#[test]
fn what_the_package_needs_of_the_language_is_there() {
    assert_eq!(
        values(&[
            "(() => { let order = ''; { using x = { [Symbol.dispose]() { order += 'd'; } }; order += 'b'; } return order; })()",
            "new Set([1]).isSubsetOf(new Set([1, 2]))",
            "typeof FinalizationRegistry",
            "Object.hasOwn({ a: 1 }, 'a')",
            "new DataView(new BigInt64Array([-2n]).buffer).getBigInt64(0, true)",
            "class { static #x = 4; static get() { return this.#x; } }.get()",
            "typeof console",
            "(globalThis.console = 5, console)",
            "typeof Date.now()",
        ]),
        ["bd", "true", "function", "true", "-2", "4", "object", "5", "number"]
    );
}
