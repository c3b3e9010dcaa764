//! The functions that a module can import (spec 03 §6), as thin wrappers around `HostEnv`: check pointers, call one method, write
//! the `out` parameters. They are typed at compile time, so a host call costs a few nanoseconds above its work.

use lightcone_host::{AbiError, Advance, ConsoleLevel, Errno, HostTrap, RangeBounds, ReadProgress};
use lightcone_types::{ConnectionId, IndexId, TableId};
use wasmtime::{Caller, Linker, WasmBacktrace};

use crate::memory::{read_u32, slice, slice_mut, text, write, write_u32};
use crate::state::{host_call, State};
use crate::{trap, waits};

/// The answer when there is nothing more to read.
const FINISHED: u32 = -1i32 as u32;

/// Defines functions: the version, the name or names, the parameters, all of 32 bits, and a body on the guest's memory and the host's
/// state. The body gives the result, which a function with `-> ()` does not have.
macro_rules! functions {
    ($linker:ident; $(
        $version:literal $($name:ident)|+ ($($parameter:ident),*) $(-> $nothing:tt)? |$memory:pat_param, $env:ident| $body:block
    )+) => {$(
        for name in [$(stringify!($name)),+] {
            let function = |mut caller: Caller<'_, State>, $($parameter: u32),*| {
                let result = host_call(&mut caller, |$memory, $env| $body);
                functions!(@result result $($nothing)?)
            };
            $linker.func_wrap(concat!("spacetime_", $version), name, function)?;
        }
    )+};
    (@result $result:ident) => { $result };
    (@result $result:ident ()) => { $result.map(drop) };
}

pub(crate) fn define(linker: &mut Linker<State>, waits: waits::Waits) -> wasmtime::Result<()> {
    define_reads(linker)?;
    define_writes(linker)?;
    define_bytes(linker)?;
    define_console(linker)?;
    define_procedures(linker)?;
    waits::define(linker, waits)
}

/// The answer 0, with a number for the module.
#[inline]
fn told(memory: &mut [u8], out: u32, number: u32) -> Result<u32, AbiError> {
    write_u32(memory, out, number)?;
    Ok(0)
}

/// The parameters of a range scan: prefix, start and end are (pointer, length) in guest memory.
fn range(
    memory: &[u8],
    prefix_elems: u32,
    [prefix, start, end]: [(u32, u32); 3],
) -> Result<RangeBounds<'_>, HostTrap> {
    let columns = u16::try_from(prefix_elems).map_err(|_| HostTrap::PrefixElems(prefix_elems))?;
    Ok(RangeBounds {
        prefix: match columns {
            0 => &[],
            _ => slice(memory, prefix.0, prefix.1)?,
        },
        prefix_columns: columns.into(),
        start: slice(memory, start.0, start.1)?,
        end: slice(memory, end.0, end.1)?,
    })
}

fn define_reads(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    functions! { linker;
        "10.0" table_id_from_name(name, name_len, out) |memory, env| {
            let table = env.table_id_from_name(text(memory, name, name_len)?)?;
            told(memory, out, table.0)
        }
        "10.0" index_id_from_name(name, name_len, out) |memory, env| {
            let index = env.index_id_from_name(text(memory, name, name_len)?)?;
            told(memory, out, index.0)
        }
        "10.0" datastore_table_row_count(table, out) |memory, env| {
            let count = env.table_row_count(TableId(table))?;
            write(memory, out, &count.to_le_bytes())?;
            Ok(0)
        }
        "10.0" datastore_table_scan_bsatn(table, out) |memory, env| {
            let iterator = env.table_scan(TableId(table))?;
            told(memory, out, iterator)
        }
        "10.4" datastore_index_scan_point_bsatn(index, point, point_len, out) |memory, env| {
            let iterator = env.index_scan_point(IndexId(index), slice(memory, point, point_len)?)?;
            told(memory, out, iterator)
        }
        "10.0" datastore_index_scan_range_bsatn | datastore_btree_scan_bsatn(
            index, prefix, prefix_len, prefix_elems, rstart, rstart_len, rend, rend_len, out
        ) |memory, env| {
            let parts = [(prefix, prefix_len), (rstart, rstart_len), (rend, rend_len)];
            let iterator = env.index_scan_range(IndexId(index), range(memory, prefix_elems, parts)?)?;
            told(memory, out, iterator)
        }
        "10.0" row_iter_bsatn_advance(iterator, buffer, len) |memory, env| {
            env.row_iter_exists(iterator)?;
            let capacity = read_u32(memory, len)?;
            let advance = env.row_iter_advance(iterator, slice_mut(memory, buffer, capacity)?)?;
            let (size, code) = match advance {
                Advance::More(size) => (size, 0),
                Advance::Finished(size) => (size, FINISHED),
                Advance::TooSmall(size) => (size, Errno::BUFFER_TOO_SMALL.number().into()),
            };
            write_u32(memory, len, size as u32)?;
            Ok(code)
        }
        "10.0" row_iter_bsatn_close(iterator) |_, env| {
            env.row_iter_close(iterator).map(|()| 0)
        }
    }
    Ok(())
}

fn define_writes(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    functions! { linker;
        "10.0" datastore_insert_bsatn(table, row, len) |memory, env| {
            let row_len = read_u32(memory, len)?;
            let generated = env.insert(TableId(table), slice_mut(memory, row, row_len)?)?;
            told(memory, len, generated as u32)
        }
        "10.0" datastore_update_bsatn(table, index, row, len) |memory, env| {
            let row_len = read_u32(memory, len)?;
            let row = slice_mut(memory, row, row_len)?;
            let generated = env.update(TableId(table), IndexId(index), row)?;
            told(memory, len, generated as u32)
        }
        "10.4" datastore_delete_by_index_scan_point_bsatn(index, point, point_len, out) |memory, env| {
            let count = env.delete_by_index_point(IndexId(index), slice(memory, point, point_len)?)?;
            told(memory, out, count)
        }
        "10.0" datastore_delete_by_index_scan_range_bsatn | datastore_delete_by_btree_scan_bsatn(
            index, prefix, prefix_len, prefix_elems, rstart, rstart_len, rend, rend_len, out
        ) |memory, env| {
            let parts = [(prefix, prefix_len), (rstart, rstart_len), (rend, rend_len)];
            let count = env.delete_by_index_range(IndexId(index), range(memory, prefix_elems, parts)?)?;
            told(memory, out, count)
        }
        "10.0" datastore_delete_all_by_eq_bsatn(table, relation, relation_len, out) |memory, env| {
            let count = env.delete_all_by_eq(TableId(table), slice(memory, relation, relation_len)?)?;
            told(memory, out, count)
        }
        "10.5" datastore_clear(table, out) |memory, env| {
            let count = env.clear(TableId(table))?;
            write(memory, out, &count.to_le_bytes())?;
            Ok(0)
        }
    }
    Ok(())
}

fn define_bytes(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    functions! { linker;
        "10.0" bytes_source_read(source, buffer, len) |memory, env| {
            env.source_remaining(source)?;
            let capacity = read_u32(memory, len)?;
            let (size, progress) = env.source_read(source, slice_mut(memory, buffer, capacity)?)?;
            write_u32(memory, len, size as u32)?;
            Ok(match progress {
                ReadProgress::More => 0,
                ReadProgress::Finished => FINISHED,
            })
        }
        "10.1" bytes_source_remaining_length(source, out) |memory, env| {
            let remaining = env.source_remaining(source)?;
            told(memory, out, remaining as u32)
        }
        "10.0" bytes_sink_write(sink, buffer, len) |memory, env| {
            env.sink_exists(sink)?;
            let size = read_u32(memory, len)?;
            env.sink_write(sink, slice(memory, buffer, size)?)?;
            // All rows fitted, so the number at `len` is right; it still must be writable.
            told(memory, len, size)
        }
        "10.0" identity(out) -> () |memory, env| {
            write(memory, out, env.identity().as_le_bytes())?;
            Ok(0)
        }
        "10.2" get_jwt(connection, out) |memory, env| {
            let bytes = slice(memory, connection, 16)?.try_into().expect("the slice has 16 bytes");
            let source = env.jwt_source(ConnectionId(u128::from_le_bytes(bytes)))?;
            told(memory, out, source)
        }
    }
    Ok(())
}

fn define_console(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "spacetime_10.0",
        "console_log",
        |mut caller: Caller<'_, State>,
         level: u32,
         target: u32,
         target_len: u32,
         file: u32,
         file_len: u32,
         line: u32,
         message: u32,
         message_len: u32| {
            let trace = match level as u8 {
                ConsoleLevel::PANIC_NUMBER => trap::frames(&WasmBacktrace::force_capture(&caller)),
                _ => Vec::new(),
            };
            host_call(&mut caller, |memory, env| {
                // As in the reference, a record with a bad pointer is dropped; every other function traps.
                let optional = |pointer, len| match pointer {
                    0 => Ok(None),
                    _ => slice(memory, pointer, len).map(Some),
                };
                if let (Ok(target), Ok(file), Ok(message)) = (
                    optional(target, target_len),
                    optional(file, file_len),
                    slice(memory, message, message_len),
                ) {
                    env.console_log(level, target, file, line, message, || trace);
                }
                Ok(0)
            })
            .map(drop)
        },
    )?;
    functions! { linker;
        "10.0" console_timer_start(name, name_len) |memory, env| {
            env.console_timer_start(slice(memory, name, name_len)?)
        }
        "10.0" console_timer_end(timer) |_, env| {
            env.console_timer_end(timer).map(|()| 0)
        }
    }
    Ok(())
}

/// For procedures. What reducers get for them says spec 03 §6.1.
fn define_procedures(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    functions! { linker;
        "10.3" procedure_abort_mut_tx() |_, env| {
            env.procedure_abort_mut_tx().map(|()| 0)
        }
        "10.0" volatile_nonatomic_schedule_immediate(name, name_len, args, args_len) -> () |memory, env| {
            let name = text(memory, name, name_len)?;
            let args = slice(memory, args, args_len)?;
            env.volatile_nonatomic_schedule_immediate(name, args)?;
            Ok(0)
        }
    }
    Ok(())
}
