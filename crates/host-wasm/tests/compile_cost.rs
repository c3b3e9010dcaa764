//! Programs that are made to exhaust the compiler are refused before it sees them; large ones of real compilers are not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::*;
use lightcone_host::{HostLimits, ModuleEngine};
use lightcone_host_wasm::{WasmEngine, WasmEngineOptions};

fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 127) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 128);
    }
}

fn section(id: u8, content: Vec<u8>) -> Vec<u8> {
    [vec![id], leb(content.len()), content].concat()
}

/// A program with functions without parameters, each with so many locals of 64 bits.
fn functions(locals: usize, bodies: &[Vec<u8>]) -> Vec<u8> {
    let body = |code: &Vec<u8>| {
        let body = [vec![1], leb(locals), vec![0x7e], code.clone(), vec![0x0b]].concat();
        [leb(body.len()), body].concat()
    };
    let code: Vec<u8> = bodies.iter().flat_map(body).collect();
    let count = leb(bodies.len());
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, vec![1, 0x60, 0, 0]),
        section(3, [count.clone(), vec![0; bodies.len()]].concat()),
        section(10, [count, code].concat()),
    ]
    .concat()
}

/// Nested loops, in the innermost of which every local changes.
fn loops(depth: usize, locals: usize) -> Vec<u8> {
    let mut code = [0x03, 0x40].repeat(depth);
    for local in 0..locals {
        code.extend(
            [
                vec![0x20],
                leb(local),
                vec![0x42, 1, 0x7c, 0x21],
                leb(local),
            ]
            .concat(),
        );
    }
    for level in 0..depth {
        code.extend([vec![0x20], leb(level % locals), vec![0x50, 0x0d, 0, 0x0b]].concat());
    }
    code
}

/// One branch after the other, before all locals are used.
fn branches(count: usize, locals: usize) -> Vec<u8> {
    let mut code = Vec::new();
    for number in 0..count {
        code.extend(
            [
                vec![0x20],
                leb(number % locals),
                vec![0x50, 0x04, 0x40, 0x42, 7, 0x21],
                leb(number * 31 % locals),
                vec![0x0b],
            ]
            .concat(),
        );
    }
    for local in 0..locals {
        code.extend([vec![0x20], leb(local), vec![0x1a]].concat());
    }
    code
}

fn load_uncached(program: &[u8]) -> Result<(), String> {
    let engine = WasmEngine::new(WasmEngineOptions::default()).unwrap();
    let config = config(HostLimits::default(), Arc::default());
    match engine.load(program, &config) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn bombs_for_the_compiler_are_refused_at_once() {
    for (what, program) in [
        ("loops", functions(10_000, &[loops(1_000, 10_000)])),
        (
            "few loops, many locals",
            functions(50_000, &[loops(2_000, 50_000)]),
        ),
        ("branches", functions(50_000, &[branches(300_000, 50_000)])),
        (
            "many functions",
            functions(5_000, &vec![loops(4_000, 5_000); 40]),
        ),
    ] {
        let started = Instant::now();
        let error = load_uncached(&program).unwrap_err();
        assert!(error.contains("[LC0726]"), "{what}: {error}");
        assert!(error.contains("instructions"), "{what}: {error}");
        // Compiling any of them takes minutes, if there is the memory for it.
        assert!(started.elapsed() < Duration::from_secs(30), "{what}");
    }
}

/// What is far below the bound gets to the compiler; without imports it is no module.
#[test]
fn ordinary_programs_are_compiled() {
    for (what, program) in [
        ("loops", functions(20, &[loops(20, 20)])),
        ("branches", functions(50, &[branches(500, 50)])),
        ("functions", functions(10, &vec![loops(3, 10); 200])),
    ] {
        let error = load_uncached(&program).unwrap_err();
        assert!(error.contains("unable to determine ABI"), "{what}: {error}");
    }
}
