//! Host calls written in Rust, made by a real module: a script is a memory image and a list of calls, and a small
//! interpreter in the module makes the calls within one reducer call and sends back the memory and all results.

#![allow(dead_code)]

use lightcone_host::{ProcedureOutcome, ReducerOutcome};

use crate::common::{reducer, Running};

/// Import version, name and number of parameters of the functions that a script can call; all return an i32.
const FUNCTIONS: &[(&str, &str, usize)] = &[
    ("10.0", "table_id_from_name", 3),
    ("10.0", "index_id_from_name", 3),
    ("10.0", "datastore_table_row_count", 2),
    ("10.0", "datastore_table_scan_bsatn", 2),
    ("10.0", "datastore_index_scan_range_bsatn", 9),
    ("10.0", "datastore_btree_scan_bsatn", 9),
    ("10.0", "datastore_delete_by_index_scan_range_bsatn", 9),
    ("10.0", "datastore_delete_by_btree_scan_bsatn", 9),
    ("10.0", "datastore_delete_all_by_eq_bsatn", 4),
    ("10.0", "row_iter_bsatn_advance", 3),
    ("10.0", "row_iter_bsatn_close", 1),
    ("10.0", "datastore_insert_bsatn", 3),
    ("10.0", "datastore_update_bsatn", 4),
    ("10.0", "bytes_source_read", 3),
    ("10.1", "bytes_source_remaining_length", 2),
    ("10.2", "get_jwt", 2),
    ("10.3", "procedure_start_mut_tx", 1),
    ("10.3", "procedure_commit_mut_tx", 0),
    ("10.4", "datastore_index_scan_point_bsatn", 4),
    ("10.4", "datastore_delete_by_index_scan_point_bsatn", 4),
    ("10.5", "datastore_clear", 2),
    ("10.6", "env_get", 3),
];

/// Where the image of a script starts in guest memory.
const IMAGE: u32 = 1024;
const PARAMS: usize = 9;

/// The interpreter.
pub fn interpreter() -> String {
    let mut imports = String::new();
    let mut dispatch = String::new();
    for (number, (version, name, params)) in FUNCTIONS.iter().enumerate() {
        let ty = format!("{} (result i32)", "(param i32) ".repeat(*params));
        imports += &format!("(import \"spacetime_{version}\" \"{name}\" (func $f{number} {ty}))\n");
        let load = |param: usize| format!("(i32.load offset={} (local.get $call))", 4 + 4 * param);
        let loads: String = (0..*params).map(load).collect();
        dispatch += &format!(
            "(if (i32.eq (i32.load (local.get $call)) (i32.const {number})) (then
                (i32.store (local.get $result) (call $f{number} {loads}))))\n"
        );
    }
    let definitions = format!(
        r#"{imports}
        (import "spacetime_10.0" "bytes_sink_write" (func $sink_write (param i32 i32 i32) (result i32)))
        (data (i32.const 16) "0123456789abcdef")
        (memory $big 0)
        (global $hex_end (mut i32) (i32.const 0))
        (func $hex (param $from i32) (param $len i32)
            (loop $next
                (if (local.get $len) (then
                    (i32.store8 (global.get $hex_end)
                        (i32.load8_u offset=16 (i32.shr_u (i32.load8_u (local.get $from)) (i32.const 4))))
                    (i32.store8 offset=1 (global.get $hex_end)
                        (i32.load8_u offset=16 (i32.and (i32.load8_u (local.get $from)) (i32.const 15))))
                    (global.set $hex_end (i32.add (global.get $hex_end) (i32.const 2)))
                    (local.set $from (i32.add (local.get $from) (i32.const 1)))
                    (local.set $len (i32.sub (local.get $len) (i32.const 1)))
                    (br $next)))))"#
    )
    .replace("(memory $big 0)\n", "");
    // The arguments are read to 65536: image length, image, number of calls, calls. Results go to 196608, hex to 262144.
    let body = format!(
        r#"(local $call i32) (local $result i32) (local $image_len i32) (local $calls i32)
        (i32.store (i32.const 8) (i32.const 131072))
        (drop (call $f13 (local.get $args) (i32.const 65536) (i32.const 8)))
        (local.set $image_len (i32.load (i32.const 65536)))
        (memory.copy (i32.const {IMAGE}) (i32.const 65540) (local.get $image_len))
        (local.set $call (i32.add (i32.const 65540) (local.get $image_len)))
        (local.set $calls (i32.load (local.get $call)))
        (local.set $call (i32.add (local.get $call) (i32.const 4)))
        (local.set $result (i32.const 196608))
        (loop $next
            (if (local.get $calls) (then
                {dispatch}
                (local.set $call (i32.add (local.get $call) (i32.const 40)))
                (local.set $result (i32.add (local.get $result) (i32.const 4)))
                (local.set $calls (i32.sub (local.get $calls) (i32.const 1)))
                (br $next))))
        (global.set $hex_end (i32.const 262144))
        (call $hex (i32.const {IMAGE}) (local.get $image_len))
        (call $hex (i32.const 196608) (i32.sub (local.get $result) (i32.const 196608)))
        (i32.store (i32.const 8) (i32.sub (global.get $hex_end) (i32.const 262144)))
        (drop (call $sink_write (local.get $sink) (i32.const 262144) (i32.const 8)))
        (i32.const 1)"#
    );
    // A procedure does the same, with the result that procedures have.
    let procedure = r#"(memory (export "memory") 16)
        (func (export "__call_procedure__") (param i32 i64 i64 i64 i64 i64 i64 i64 i32 i32) (result i32)
            (drop (call $run (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5)
                (local.get 6) (local.get 7) (local.get 8) (local.get 9)))
            (i32.const 0))"#;
    reducer(&definitions, &body)
        .replace("(memory (export \"memory\") 1)", procedure)
        .replace(
            "(func (export \"__call_reducer__\")",
            "(func $run (export \"__call_reducer__\")",
        )
}

/// A place in the image of a script.
#[derive(Clone, Copy)]
pub struct At(usize);

#[derive(Default)]
pub struct Script {
    image: Vec<u8>,
    calls: Vec<u32>,
}

/// What came out of a script.
pub struct Report {
    image: Vec<u8>,
    pub codes: Vec<i32>,
}

impl Script {
    /// Puts bytes into memory and returns where.
    pub fn put(&mut self, bytes: &[u8]) -> At {
        let at = At(self.image.len());
        self.image.extend_from_slice(bytes);
        // Never the same place twice, also for no bytes.
        self.image.push(0xee);
        at
    }

    pub fn put_u32(&mut self, value: u32) -> At {
        self.put(&value.to_le_bytes())
    }

    pub fn pointer(at: At) -> u32 {
        IMAGE + at.0 as u32
    }

    pub fn call(&mut self, name: &str, params: &[u32]) {
        let number = FUNCTIONS
            .iter()
            .position(|(_, known, _)| *known == name)
            .expect("a known function");
        assert_eq!(params.len(), FUNCTIONS[number].2, "{name}");
        self.calls.push(number as u32);
        self.calls.extend(params);
        self.calls
            .extend(std::iter::repeat_n(0, PARAMS - params.len()));
    }

    /// Inserts a row; the place is that of the row, followed by that of its length.
    pub fn insert(&mut self, table: u32, row: &[u8]) -> (At, At) {
        let places = (self.put(row), self.put_u32(row.len() as u32));
        self.call(
            "datastore_insert_bsatn",
            &[table, Script::pointer(places.0), Script::pointer(places.1)],
        );
        places
    }

    pub fn update(&mut self, table: u32, index: u32, row: &[u8]) -> (At, At) {
        let places = (self.put(row), self.put_u32(row.len() as u32));
        self.call(
            "datastore_update_bsatn",
            &[
                table,
                index,
                Script::pointer(places.0),
                Script::pointer(places.1),
            ],
        );
        places
    }

    /// A call with one byte string and an `out` of 8 bytes.
    pub fn with_bytes(&mut self, name: &str, id: u32, bytes: &[u8]) -> At {
        let (place, out) = (self.put(bytes), self.put(&[0; 8]));
        self.call(
            name,
            &[
                id,
                Script::pointer(place),
                bytes.len() as u32,
                Script::pointer(out),
            ],
        );
        out
    }

    /// A name lookup.
    pub fn lookup(&mut self, function: &str, name: &str) -> At {
        let (place, out) = (self.put(name.as_bytes()), self.put_u32(0));
        self.call(
            function,
            &[
                Script::pointer(place),
                name.len() as u32,
                Script::pointer(out),
            ],
        );
        out
    }

    /// A range scan or delete.
    pub fn range(
        &mut self,
        name: &str,
        index: u32,
        prefix: &[u8],
        elems: u32,
        rstart: &[u8],
        rend: &[u8],
    ) -> At {
        let places = [prefix, rstart, rend]
            .map(|bytes| (Script::pointer(self.put(bytes)), bytes.len() as u32));
        let out = self.put_u32(0);
        let [prefix, rstart, rend] = places;
        let params = [
            index,
            prefix.0,
            prefix.1,
            elems,
            rstart.0,
            rstart.1,
            rend.0,
            rend.1,
            Script::pointer(out),
        ];
        self.call(name, &params);
        out
    }

    /// Reads from an iterator into a buffer of so many bytes.
    pub fn advance(&mut self, iterator: u32, capacity: u32) -> (At, At) {
        let places = (
            self.put(&vec![0; capacity as usize]),
            self.put_u32(capacity),
        );
        self.call(
            "row_iter_bsatn_advance",
            &[
                iterator,
                Script::pointer(places.0),
                Script::pointer(places.1),
            ],
        );
        places
    }

    pub fn run(&self, running: &mut Running) -> Report {
        match running.call(0, &self.args()) {
            ReducerOutcome::UserError(hex) => self.report(&hex),
            other => panic!("{other:?}"),
        }
    }

    /// The same in a procedure, which begins without a transaction.
    pub fn run_in_procedure(&self, running: &mut Running) -> Report {
        match running.call_procedure(0, &self.args()) {
            ProcedureOutcome::Returned(hex) => {
                self.report(std::str::from_utf8(&hex).expect("hexadecimal digits"))
            }
            other => panic!("{other:?}"),
        }
    }

    fn args(&self) -> Vec<u8> {
        let mut args = (self.image.len() as u32).to_le_bytes().to_vec();
        args.extend_from_slice(&self.image);
        args.extend_from_slice(&((self.calls.len() / (PARAMS + 1)) as u32).to_le_bytes());
        args.extend(self.calls.iter().flat_map(|word| word.to_le_bytes()));
        args
    }

    fn report(&self, hex: &str) -> Report {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let mut image: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        let codes = image.split_off(self.image.len());
        let codes = codes
            .chunks(4)
            .map(|code| i32::from_le_bytes(code.try_into().unwrap()))
            .collect();
        Report { image, codes }
    }
}

impl Report {
    pub fn bytes(&self, at: At, len: usize) -> &[u8] {
        &self.image[at.0..at.0 + len]
    }

    pub fn u32(&self, at: At) -> u32 {
        u32::from_le_bytes(self.bytes(at, 4).try_into().unwrap())
    }

    pub fn u64(&self, at: At) -> u64 {
        u64::from_le_bytes(self.bytes(at, 8).try_into().unwrap())
    }

    /// What an `advance` copied.
    pub fn rows(&self, (buffer, len): (At, At)) -> &[u8] {
        self.bytes(buffer, self.u32(len) as usize)
    }
}
