//! Modules that replace everything that can be replaced, and then look for what modules may not have (§2, §8).

use lightcone_host::{HostLimits, ReducerOutcome};

use crate::common::{refusal, script, small_limits, Running};

/// `take(Buffer)` takes 1 GiB, which is beyond the limits, through a resizable buffer.
const TAKE: &str = "const taken = [];\n\
    const take = (Buffer) => {\n\
      const buffer = new Buffer(0, { maxByteLength: 2 ** 30 });\n\
      (buffer.resize ?? buffer.grow).call(buffer, 2 ** 30);\n\
      taken.push(buffer);\n\
      sys.console_log(2, 'TOOK ' + buffer.byteLength);\n\
    };\n\
    const isResizable = Reflect.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'resizable')?.get ?? (() => false);\n\
    const isGrowable = globalThis.SharedArrayBuffer\n\
      && Reflect.getOwnPropertyDescriptor(SharedArrayBuffer.prototype, 'growable')?.get || (() => false);\n\
    const { apply, construct, ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;\n\
    const { Set: Seen, Array: List, console: theConsole } = globalThis;";

/// Each is the body of one call. None may take the memory.
const ATTEMPTS: &[(&str, &str)] = &[
    (
        "a replaced Reflect.construct",
        "let Native; const original = Reflect.construct;\n\
         Reflect.construct = (target, args) => { Native = target; return original(target, args); };\n\
         new ArrayBuffer(8); Reflect.construct = original; take(Native ?? ArrayBuffer);",
    ),
    (
        "a replaced Reflect.construct that passes more arguments",
        "const original = Reflect.construct;\n\
         Reflect.construct = (target, args) => original(target, [0, { maxByteLength: 2 ** 30 }]); take(ArrayBuffer);",
    ),
    (
        "replaced methods of arrays",
        "for (const name of ['slice', 'concat', 'at', 'with', 'splice']) Array.prototype[name] = function () { return this; };\n\
         take(ArrayBuffer);",
    ),
    (
        "a replaced iterator of arrays",
        "Array.prototype[Symbol.iterator] = function* () { yield 0; yield { maxByteLength: 2 ** 30 }; }; take(ArrayBuffer);",
    ),
    (
        "elements in prototypes",
        "for (const prototype of [Array.prototype, Object.prototype])\n\
           Object.defineProperty(prototype, 1, { get: () => ({ maxByteLength: 2 ** 30 }), configurable: true });\n\
         let buffer; try { buffer = new ArrayBuffer(0); }\n\
         finally { delete Array.prototype[1]; delete Object.prototype[1]; }\n\
         buffer.resize(2 ** 30); log('TOOK', buffer.byteLength);",
    ),
    (
        "an option that changes",
        "let asked = 0; const options = { get maxByteLength() { return asked++ ? 2 ** 30 : undefined; } };\n\
         const buffer = new ArrayBuffer(0, options); buffer.resize(2 ** 30); log('TOOK', buffer.byteLength);",
    ),
    (
        "an option of a proxy, a function, an inherited one",
        "const inherited = Object.create({ maxByteLength: 2 ** 30 });\n\
         const options = [new Proxy({}, { get: () => 2 ** 30 }), Object.assign(() => {}, { maxByteLength: 2 ** 30 }), inherited];\n\
         for (const option of options) try { new ArrayBuffer(0, option).resize(2 ** 30); log('TOOK'); } catch { }",
    ),
    (
        "replaced methods of functions",
        "for (const name of ['call', 'apply', 'bind', Symbol.hasInstance])\n\
           Object.defineProperty(Function.prototype, name, { value(...args) { for (const x of [this, ...args]) try { take(x); } catch { } return this; }, configurable: true });\n\
         take(ArrayBuffer);",
    ),
    (
        "everything of Reflect, Object, JSON and Symbol replaced",
        "const seen = [];\n\
         for (const owner of [Reflect, Object, JSON]) for (const name of Object.getOwnPropertyNames(owner)) {\n\
           const original = owner[name];\n\
           if (typeof original === 'function') try { owner[name] = (...args) => { seen.push(...args); return original(...args); }; } catch { } }\n\
         try { new ArrayBuffer(8); new ArrayBuffer(8).slice(1); new Uint8Array(9); } catch { }\n\
         for (const value of seen) try { take(value); } catch { }\n\
         take(ArrayBuffer);",
    ),
    (
        "a subclass",
        "class Mine extends ArrayBuffer { constructor() { super(0, { maxByteLength: 2 ** 30 }); } }; take(Mine);",
    ),
    (
        "a bound constructor",
        "const Bound = ArrayBuffer.bind(null, 0, { maxByteLength: 2 ** 30 }); take(Bound);",
    ),
    (
        "Reflect.construct with another target of new",
        "const buffer = Reflect.construct(ArrayBuffer, [0, { maxByteLength: 2 ** 30 }], Object);\n\
         ArrayBuffer.prototype.resize.call(buffer, 2 ** 30); log('TOOK');",
    ),
    (
        "a proxy of the constructor",
        "take(new Proxy(ArrayBuffer, { construct: (target, args) => { take(target); return new target(...args); } }));",
    ),
    (
        "constructor properties and species",
        "const candidates = [ArrayBuffer[Symbol.species], new ArrayBuffer(1).constructor, ArrayBuffer.prototype.constructor,\n\
           new Uint8Array(1).buffer.constructor, new ArrayBuffer(8).slice(1).constructor, Object.getPrototypeOf(class extends ArrayBuffer {}),\n\
           structuredCloneOf?.constructor, Object(new ArrayBuffer(1)).constructor];\n\
         for (const candidate of candidates) try { take(candidate); } catch { }",
    ),
    (
        "species of slice",
        "const buffer = new ArrayBuffer(64); const got = [];\n\
         buffer.constructor = { [Symbol.species]: function (...args) { got.push(this, new.target, ...args); return new ArrayBuffer(64); } };\n\
         buffer.slice(1); buffer.constructor = undefined; got.push(buffer.slice(1).constructor);\n\
         for (const value of got.slice()) try { take(value); } catch { }",
    ),
    (
        "the frames of an error of the constructor",
        "const functions = [];\n\
         Error.prepareStackTrace = (_, sites) => { for (const site of sites) functions.push(site.getFunction?.(), site.getThis?.()); return ''; };\n\
         for (const args of [[-1], [2 ** 60], [0, { maxByteLength: 1 }], [Symbol()], [1n]])\n\
           for (const Buffer of [ArrayBuffer, globalThis.SharedArrayBuffer ?? ArrayBuffer]) {\n\
             try { new Buffer(...args); } catch (error) { error.stack; } try { Buffer(...args); } catch (error) { error.stack; } }\n\
         const sloppy = new Function('seen', 'return { valueOf() { new Error().stack; return 8; } }')();\n\
         try { new ArrayBuffer(sloppy); } catch { }\n\
         const Target = new Function('return function () {}')().bind();\n\
         Object.defineProperty(Target, 'prototype', { get: new Function('new Error().stack; return Object.prototype') });\n\
         try { Reflect.construct(ArrayBuffer, [8], Target); } catch { }\n\
         Error.prepareStackTrace = undefined;\n\
         for (const value of functions) if (value) try { take(value); } catch { }",
    ),
    (
        "callers of sloppy functions",
        "const found = [];\n\
         globalThis.found = found;\n\
         const sloppy = new Function('return function valueOf() { found.push(valueOf.caller, valueOf.arguments, arguments.callee.caller); return 8; }')();\n\
         try { new ArrayBuffer({ valueOf: sloppy }); } catch { }\n\
         for (const value of found) if (value) try { take(value); } catch { }",
    ),
    (
        "transfer of a fixed buffer",
        "for (const name of ['transfer', 'transferToFixedLength']) try {\n\
           const buffer = new ArrayBuffer(8)[name](2 ** 30); log('TOOK', buffer.byteLength); } catch { }",
    ),
    (
        "shared buffers",
        "if (globalThis.SharedArrayBuffer) { take(SharedArrayBuffer); }",
    ),
    (
        "code from strings",
        "const sources = ['return WebAssembly', 'return structuredClone', 'return ShadowRealm', 'return new ShadowRealm()'];\n\
         const makers = [Function, (function* () {}).constructor, (async () => {}).constructor, (async function* () {}).constructor];\n\
         for (const source of sources) for (const Maker of makers) try { const made = new Maker(source)();\n\
           if (made instanceof Promise) made.then((value) => { if (value) log('TOOK', typeof value); }, () => {});\n\
           else if (made.next) { const step = made.next(); if (step.value) log('TOOK', typeof step.value);\n\
             step.then?.((step) => { if (step.value) log('TOOK', typeof step.value); }, () => {}); }\n\
           else log('TOOK', typeof made); } catch { }\n\
         try { (0, eval)('WebAssembly'); log('TOOK'); } catch { }\n\
         for (const name of ['WebAssembly', 'structuredClone', 'ShadowRealm', 'Worker', 'gc', 'd8']) if (name in globalThis) log('TOOK', name);\n\
         if (globalThis.Atomics?.waitAsync) log('TOOK waitAsync');",
    ),
    (
        "replaced promises",
        "const original = Promise.prototype.then; const seen = [];\n\
         Promise.prototype.then = function (...args) { seen.push(this, ...args); return original.apply(this, args); };\n\
         Object.defineProperty(Promise, Symbol.species, { value: function (f) { seen.push(f); f(() => {}, () => {}); } });\n\
         Promise.resolve(1).then(() => {}); (async () => { await { then(resolve) { seen.push(resolve); resolve(); } }; })();\n\
         for (const value of seen) try { take(value); } catch { }",
    ),
    (
        "all that can be reached",
        // Every object from the global object, host functions and values of all kinds on; every function is tried.
        "const seen = new Seen(), work = [globalThis, sys, sys21, theConsole, new Error('x'), (function* () {})(), (async function* () {})(),\n\
           (async () => {})(), [][Symbol.iterator](), new Map().entries(), new Set().values(), ''[Symbol.iterator](), 'a'.matchAll(/a/g),\n\
           new Proxy({}, {}), /x/, new Date(0), new DataView(new ArrayBuffer(1)), new WeakRef({}), Symbol.iterator, 1n, globalThis.Iterator?.from([])];\n\
         Error.prepareStackTrace = (_, sites) => { work.push(...sites); return ''; }; new Error('y').stack; Error.prepareStackTrace = undefined;\n\
         const look = (value) => { if ((typeof value === 'object' && value !== null) || typeof value === 'function') if (!seen.has(value)) { seen.add(value); work.push(value); } };\n\
         let functions = 0;\n\
         while (work.length > 0) {\n\
           const object = work.pop(); look(getPrototypeOf(Object(object)));\n\
           for (const key of ownKeys(Object(object))) {\n\
             const property = getOwnPropertyDescriptor(Object(object), key); look(property.value); look(property.get); look(property.set);\n\
             try { if (property.get) look(apply(property.get, object, [])); } catch { }\n\
           }\n\
           if (typeof object !== 'function' || object === take) continue;\n\
           functions++;\n\
           try { look(construct(object, [])); } catch { }\n\
           let made; try { made = construct(object, [0, { maxByteLength: 2 ** 30 }]); } catch { continue; }\n\
           for (const test of [isResizable, isGrowable]) try { if (apply(test, made, [])) { log('found', object.name); take(object); } } catch { }\n\
         }\n\
         sys.console_log(2, functions > 300 ? 'looked everywhere' : 'looked at ' + functions);",
    ),
];

#[test]
fn no_module_gets_memory_without_a_limit() {
    let limits = || HostLimits {
        call_ms_max: 30_000,
        ..small_limits()
    };
    let cases: String = ATTEMPTS
        .iter()
        .enumerate()
        .map(|(id, (_, attempt))| format!("case {id}: {{ {attempt} break; }}\n"))
        .collect();
    let mut module = Running::script_with(
        &format!("{TAKE}\nconst structuredCloneOf = globalThis.structuredClone?.(new ArrayBuffer(8));"),
        &format!("try {{ switch (id) {{ {cases} }} }} catch (error) {{ sys.console_log(2, 'refused'); }}"),
        limits(),
    );
    for (id, (what, _)) in ATTEMPTS.iter().enumerate() {
        let outcome = module.call(id as u32, &[]);
        let messages = module.console.messages();
        assert!(
            !messages.iter().any(|message| message.contains("TOOK")),
            "{what}: {messages:?}"
        );
        // What asks for too much again and again may lose the call.
        let is_over = matches!(&outcome, ReducerOutcome::Fatal { message } if message.contains("memory-bytes-max"));
        assert!(
            outcome == ReducerOutcome::Ok || is_over,
            "{what}: {outcome:?} {messages:?}"
        );
        if what.starts_with("all that") {
            assert_eq!(messages.last().unwrap(), "Info: looked everywhere");
            // QuickJS has resizable buffers, and counts their memory.
            assert!(messages.len() == 1 || !cfg!(feature = "v8"), "{messages:?}");
        }
        // Each attempt begins with unchanged built-ins.
        module.replace();
    }
}

/// The same while the module is loaded, before there are any limits but those of the load phase.
#[test]
fn no_module_gets_memory_without_a_limit_while_it_loads() {
    for (what, attempt) in &ATTEMPTS[..2] {
        let text = refusal(&script(&format!("{TAKE}\n{attempt}"), ""));
        assert!(
            text.contains("RangeError")
                || text.contains("out of memory")
                || text.contains("memory-bytes-max"),
            "{what}: {text}"
        );
    }
}

/// What the host runs after module code works, and says what it should, whatever the module has replaced.
#[test]
fn replaced_built_ins_do_not_change_the_host() {
    let mut module = Running::script_with(
        "const { console_log } = sys, { String: text, Reflect: reflect, TextDecoder: Decoder, TextEncoder: Encoder, Object: object } = globalThis;\n\
         const say = (value) => console_log(2, text(value)); const bytes = new Uint8Array([104, 105]);\n\
         const broken = (name) => function () { console_log(2, 'called ' + name); throw 'replaced'; };\n\
         const { ownKeys, getOwnPropertyDescriptor, defineProperty } = reflect;\n\
         const names = ['Object', 'Function', 'Array', 'Reflect', 'Promise', 'JSON', 'String', 'Boolean', 'Number', 'Symbol', 'RangeError', 'TypeError',\n\
           'Error', 'Uint8Array', 'DataView', 'ArrayBuffer', 'BigInt', 'Proxy', 'Map', 'Math'];\n\
         const spoil = () => {\n\
           for (let n = 0; n < names.length; n++) {\n\
             const name = names[n], owners = [globalThis[name], globalThis[name].prototype];\n\
             for (let o = 0; o < 2; o++) {\n\
               const owner = owners[o], keys = owner ? ownKeys(owner) : { length: 0 };\n\
               for (let k = 0; k < keys.length; k++) {\n\
                 const { configurable, writable, value } = getOwnPropertyDescriptor(owner, keys[k]);\n\
                 if (typeof value === 'function' && (configurable || writable)) try { defineProperty(owner, keys[k], { value: broken(name) }); } catch { }\n\
               }\n\
             }\n\
           }\n\
           for (let n = 0; n < names.length; n++) globalThis[names[n]] = broken(names[n]);\n\
         };",
        "if (id === 0) { spoil(); return; }\n\
         if (id === 1) { const decoder = new Decoder('utf-8', { fatal: true }); say(decoder.decode(bytes)); say(new Encoder().encode('hi')[1]);\n\
           try { new Decoder('latin1'); } catch (e) { say(e.message); } try { decoder.decode(5); } catch (e) { say(e.message); }\n\
           try { sys.datastore_table_scan_bsatn('x'); } catch (e) { say(e.message); } }\n\
         if (id === 2) throw new SenderError('for the caller');\n\
         if (id === 3) null.x;",
        small_limits(),
    );
    assert_eq!(module.call(0, &[]), ReducerOutcome::Ok);
    module.console.take();
    assert_eq!(module.call(1, &[0; 5000]), ReducerOutcome::Ok);
    let messages = module.console.messages();
    assert_eq!(messages[..2], ["Info: hi", "Info: 105"], "{messages:?}");
    assert!(
        messages[2].contains("\"latin1\" is not supported"),
        "{messages:?}"
    );
    assert!(
        !messages.iter().any(|message| message.contains("replaced")),
        "{messages:?}"
    );
    assert!(
        messages[4].contains("Expected number for `u32`"),
        "{messages:?}"
    );
    assert_eq!(
        module.call(2, &[]),
        ReducerOutcome::UserError("for the caller".into())
    );
    let message = module.fatal(3);
    assert!(message.contains("TypeError"), "{message}");
    assert!(message.contains("spacetimedb_module:"), "{message}");
}
