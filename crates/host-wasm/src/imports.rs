//! The functions that a module can import (spec 03 §6), as thin wrappers around `HostEnv`: check pointers, call one method, write
//! the `out` parameters. They are typed at compile time, so a host call costs a few nanoseconds above its work.

use lightcone_host::{Advance, ConsoleLevel, Errno, HostTrap, ReadProgress};
use lightcone_types::{ConnectionId, IndexId, TableId};
use wasmtime::{Caller, Linker, WasmBacktrace};

use crate::memory::{read_u32, slice, slice_mut, text, write, write_u32};
use crate::state::{host_call, State};
use crate::{trap, waits};

/// The answer when there is nothing more to read.
const FINISHED: u32 = -1i32 as u32;

/// How a host call waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Blocking,
    Suspending,
}

pub(crate) fn define(linker: &mut Linker<State>, waits: Waits) -> wasmtime::Result<()> {
    define_lookups(linker)?;
    define_scans(linker)?;
    define_iterators(linker)?;
    define_writes(linker)?;
    define_deletes(linker)?;
    define_bytes(linker)?;
    define_console(linker)?;
    define_procedures(linker)?;
    match waits {
        Waits::Blocking => waits::define_blocking(linker),
        Waits::Suspending => waits::define_suspending(linker),
    }
}

/// The parameters of a range scan in guest memory, as (pointer, length).
struct RangeArgs {
    prefix: (u32, u32),
    prefix_elems: u32,
    rstart: (u32, u32),
    rend: (u32, u32),
}

struct Range<'a> {
    prefix: &'a [u8],
    prefix_elems: u16,
    rstart: &'a [u8],
    rend: &'a [u8],
}

impl RangeArgs {
    fn read<'a>(&self, memory: &'a [u8]) -> Result<Range<'a>, HostTrap> {
        let prefix_elems = u16::try_from(self.prefix_elems)
            .map_err(|_| HostTrap::PrefixElems(self.prefix_elems))?;
        let prefix = match prefix_elems {
            0 => &[][..],
            _ => slice(memory, self.prefix.0, self.prefix.1)?,
        };
        let rstart = slice(memory, self.rstart.0, self.rstart.1)?;
        let rend = slice(memory, self.rend.0, self.rend.1)?;
        Ok(Range {
            prefix,
            prefix_elems,
            rstart,
            rend,
        })
    }
}

fn define_lookups(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "spacetime_10.0",
        "table_id_from_name",
        |mut caller: Caller<'_, State>, name: u32, name_len: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let table = env.table_id_from_name(text(memory, name, name_len)?)?;
                write_u32(memory, out, table.0)?;
                Ok(0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.0",
        "index_id_from_name",
        |mut caller: Caller<'_, State>, name: u32, name_len: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let index = env.index_id_from_name(text(memory, name, name_len)?)?;
                write_u32(memory, out, index.0)?;
                Ok(0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.0",
        "datastore_table_row_count",
        |mut caller: Caller<'_, State>, table: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let count = env.table_row_count(TableId(table))?;
                write(memory, out, &count.to_le_bytes())?;
                Ok(0)
            })
        },
    )?;
    Ok(())
}

fn define_scans(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "spacetime_10.0",
        "datastore_table_scan_bsatn",
        |mut caller: Caller<'_, State>, table: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let iterator = env.table_scan(TableId(table))?;
                write_u32(memory, out, iterator)?;
                Ok(0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.4",
        "datastore_index_scan_point_bsatn",
        |mut caller: Caller<'_, State>, index: u32, point: u32, point_len: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let iterator =
                    env.index_scan_point(IndexId(index), slice(memory, point, point_len)?)?;
                write_u32(memory, out, iterator)?;
                Ok(0)
            })
        },
    )?;
    for name in [
        "datastore_index_scan_range_bsatn",
        "datastore_btree_scan_bsatn",
    ] {
        linker.func_wrap(
            "spacetime_10.0",
            name,
            |mut caller: Caller<'_, State>,
             index: u32,
             prefix: u32,
             prefix_len: u32,
             prefix_elems: u32,
             rstart: u32,
             rstart_len: u32,
             rend: u32,
             rend_len: u32,
             out: u32| {
                let args = RangeArgs {
                    prefix: (prefix, prefix_len),
                    prefix_elems,
                    rstart: (rstart, rstart_len),
                    rend: (rend, rend_len),
                };
                host_call(&mut caller, |memory, env| {
                    let Range {
                        prefix,
                        prefix_elems,
                        rstart,
                        rend,
                    } = args.read(memory)?;
                    let iterator =
                        env.index_scan_range(IndexId(index), prefix, prefix_elems, rstart, rend)?;
                    write_u32(memory, out, iterator)?;
                    Ok(0)
                })
            },
        )?;
    }
    Ok(())
}

fn define_iterators(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "spacetime_10.0",
        "row_iter_bsatn_advance",
        |mut caller: Caller<'_, State>, iterator: u32, buffer: u32, len: u32| {
            host_call(&mut caller, |memory, env| {
                env.row_iter_exists(iterator)?;
                let capacity = read_u32(memory, len)?;
                let advance =
                    env.row_iter_advance(iterator, slice_mut(memory, buffer, capacity)?)?;
                let (size, code) = match advance {
                    Advance::More(size) => (size, 0),
                    Advance::Finished(size) => (size, FINISHED),
                    Advance::TooSmall(size) => (size, Errno::BUFFER_TOO_SMALL.number().into()),
                };
                write_u32(memory, len, size as u32)?;
                Ok(code)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.0",
        "row_iter_bsatn_close",
        |mut caller: Caller<'_, State>, iterator: u32| {
            host_call(&mut caller, |_, env| {
                env.row_iter_close(iterator).map(|()| 0)
            })
        },
    )?;
    Ok(())
}

fn define_writes(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "spacetime_10.0",
        "datastore_insert_bsatn",
        |mut caller: Caller<'_, State>, table: u32, row: u32, len: u32| {
            host_call(&mut caller, |memory, env| {
                let row_len = read_u32(memory, len)?;
                let generated = env.insert(TableId(table), slice_mut(memory, row, row_len)?)?;
                write_u32(memory, len, generated as u32)?;
                Ok(0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.0",
        "datastore_update_bsatn",
        |mut caller: Caller<'_, State>, table: u32, index: u32, row: u32, len: u32| {
            host_call(&mut caller, |memory, env| {
                let row_len = read_u32(memory, len)?;
                let generated = env.update(
                    TableId(table),
                    IndexId(index),
                    slice_mut(memory, row, row_len)?,
                )?;
                write_u32(memory, len, generated as u32)?;
                Ok(0)
            })
        },
    )?;
    Ok(())
}

fn define_deletes(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "spacetime_10.4",
        "datastore_delete_by_index_scan_point_bsatn",
        |mut caller: Caller<'_, State>, index: u32, point: u32, point_len: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let count =
                    env.delete_by_index_point(IndexId(index), slice(memory, point, point_len)?)?;
                write_u32(memory, out, count)?;
                Ok(0)
            })
        },
    )?;
    for name in [
        "datastore_delete_by_index_scan_range_bsatn",
        "datastore_delete_by_btree_scan_bsatn",
    ] {
        linker.func_wrap(
            "spacetime_10.0",
            name,
            |mut caller: Caller<'_, State>,
             index: u32,
             prefix: u32,
             prefix_len: u32,
             prefix_elems: u32,
             rstart: u32,
             rstart_len: u32,
             rend: u32,
             rend_len: u32,
             out: u32| {
                let args = RangeArgs {
                    prefix: (prefix, prefix_len),
                    prefix_elems,
                    rstart: (rstart, rstart_len),
                    rend: (rend, rend_len),
                };
                host_call(&mut caller, |memory, env| {
                    let Range {
                        prefix,
                        prefix_elems,
                        rstart,
                        rend,
                    } = args.read(memory)?;
                    let count = env.delete_by_index_range(
                        IndexId(index),
                        prefix,
                        prefix_elems,
                        rstart,
                        rend,
                    )?;
                    write_u32(memory, out, count)?;
                    Ok(0)
                })
            },
        )?;
    }
    linker.func_wrap(
        "spacetime_10.0",
        "datastore_delete_all_by_eq_bsatn",
        |mut caller: Caller<'_, State>, table: u32, relation: u32, relation_len: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let count =
                    env.delete_all_by_eq(TableId(table), slice(memory, relation, relation_len)?)?;
                write_u32(memory, out, count)?;
                Ok(0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.5",
        "datastore_clear",
        |mut caller: Caller<'_, State>, table: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let count = env.clear(TableId(table))?;
                write(memory, out, &count.to_le_bytes())?;
                Ok(0)
            })
        },
    )?;
    Ok(())
}

fn define_bytes(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "spacetime_10.0",
        "bytes_source_read",
        |mut caller: Caller<'_, State>, source: u32, buffer: u32, len: u32| {
            host_call(&mut caller, |memory, env| {
                env.source_remaining(source)?;
                let capacity = read_u32(memory, len)?;
                let (size, progress) =
                    env.source_read(source, slice_mut(memory, buffer, capacity)?)?;
                write_u32(memory, len, size as u32)?;
                Ok(match progress {
                    ReadProgress::More => 0,
                    ReadProgress::Finished => FINISHED,
                })
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.1",
        "bytes_source_remaining_length",
        |mut caller: Caller<'_, State>, source: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let remaining = env.source_remaining(source)?;
                write_u32(memory, out, remaining as u32)?;
                Ok(0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.0",
        "bytes_sink_write",
        |mut caller: Caller<'_, State>, sink: u32, buffer: u32, len: u32| {
            host_call(&mut caller, |memory, env| {
                env.sink_exists(sink)?;
                let size = read_u32(memory, len)?;
                env.sink_write(sink, slice(memory, buffer, size)?)?;
                // All rows fitted, so the number at `len` is right; it still must be writable.
                write_u32(memory, len, size)?;
                Ok(0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.0",
        "identity",
        |mut caller: Caller<'_, State>, out: u32| {
            host_call(&mut caller, |memory, env| {
                write(memory, out, env.identity().as_le_bytes())?;
                Ok(0)
            })
            .map(drop)
        },
    )?;
    linker.func_wrap(
        "spacetime_10.2",
        "get_jwt",
        |mut caller: Caller<'_, State>, connection: u32, out: u32| {
            host_call(&mut caller, |memory, env| {
                let bytes = slice(memory, connection, 16)?
                    .try_into()
                    .expect("the slice has 16 bytes");
                let source = env.jwt_source(ConnectionId(u128::from_le_bytes(bytes)))?;
                write_u32(memory, out, source)?;
                Ok(0)
            })
        },
    )?;
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
    linker.func_wrap(
        "spacetime_10.0",
        "console_timer_start",
        |mut caller: Caller<'_, State>, name: u32, name_len: u32| {
            host_call(&mut caller, |memory, env| {
                env.console_timer_start(slice(memory, name, name_len)?)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.0",
        "console_timer_end",
        |mut caller: Caller<'_, State>, timer: u32| {
            host_call(&mut caller, |_, env| {
                env.console_timer_end(timer).map(|()| 0)
            })
        },
    )?;
    Ok(())
}

/// For procedures. What reducers get for them says spec 03 §6.1.
fn define_procedures(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "spacetime_10.3",
        "procedure_commit_mut_tx",
        |mut caller: Caller<'_, State>| {
            host_call(&mut caller, |_, env| {
                env.procedure_commit_mut_tx().map(|()| 0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.3",
        "procedure_abort_mut_tx",
        |mut caller: Caller<'_, State>| {
            host_call(&mut caller, |_, env| {
                env.procedure_abort_mut_tx().map(|()| 0)
            })
        },
    )?;
    linker.func_wrap(
        "spacetime_10.0",
        "volatile_nonatomic_schedule_immediate",
        |mut caller: Caller<'_, State>, name: u32, name_len: u32, args: u32, args_len: u32| {
            host_call(&mut caller, |memory, env| {
                let name = text(memory, name, name_len)?;
                let args = slice(memory, args, args_len)?;
                env.volatile_nonatomic_schedule_immediate(name, args)?;
                Ok(0)
            })
            .map(drop)
        },
    )?;
    Ok(())
}
