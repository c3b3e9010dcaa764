//! Host calls that wait (spec 03 §10, §13), for instances that block their thread and for those that are suspended.

use lightcone_host::clock::ticks;
use lightcone_host::{AbiError, Errno, HostEnv, HostTrap, HttpRequest, HttpSources, Waiting};
use lightcone_types::bsatn::{Decode as _, Reader};
use wasmtime::{AsContextMut as _, Caller, Linker};

use crate::memory::{slice, write, write_u32};
use crate::state::{host_call, State};
use crate::trap::end_call;

const MODULE: &str = "spacetime_10.3";
const START: &str = "procedure_start_mut_tx";
const SLEEP: &str = "procedure_sleep_until";
const REQUEST: &str = "procedure_http_request";

/// Places in guest memory: the request, its body, and its answer.
#[derive(Clone, Copy)]
struct RequestPlace {
    request: (u32, u32),
    body: (u32, u32),
    out: u32,
}

pub(crate) fn define_blocking(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, START, |mut caller: Caller<'_, State>, out: u32| {
        let mut waiting = None;
        let asked = host_call(&mut caller, |_, env| {
            waiting = env.ask_transaction()?;
            Ok(0)
        })?;
        if asked != 0 {
            return Ok(asked);
        }
        block(&mut caller, waiting);
        host_call(&mut caller, |memory, env| started(memory, env, out))
    })?;
    linker.func_wrap(
        MODULE,
        SLEEP,
        |mut caller: Caller<'_, State>, wake_us: i64| -> wasmtime::Result<i64> {
            let waiting = caller.data_mut().env.ask_sleep(wake_us).map_err(end_call)?;
            block(&mut caller, waiting);
            caller.data_mut().env.slept().map_err(end_call)
        },
    )?;
    linker.func_wrap(
        MODULE,
        REQUEST,
        |mut caller: Caller<'_, State>,
         request: u32,
         request_len: u32,
         body: u32,
         body_len: u32,
         out: u32| {
            let place = RequestPlace {
                request: (request, request_len),
                body: (body, body_len),
                out,
            };
            let mut waiting = None;
            let asked = host_call(&mut caller, |memory, env| {
                waiting = ask(memory, env, place)?;
                Ok(0)
            })?;
            if asked != 0 {
                return Ok(asked);
            }
            block(&mut caller, waiting);
            host_call(&mut caller, |memory, env| answered(memory, env, place))
        },
    )?;
    Ok(())
}

pub(crate) fn define_suspending(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap_async(
        MODULE,
        START,
        |mut caller: Caller<'_, State>, (out,): (u32,)| {
            Box::new(async move {
                let mut waiting = None;
                let asked = host_call(&mut caller, |_, env| {
                    waiting = env.ask_transaction()?;
                    Ok(0)
                })?;
                if asked != 0 {
                    return Ok(asked);
                }
                suspend(waiting).await;
                while let Some(again) = caller.data_mut().env.ask_transaction_again() {
                    suspend(Some(again)).await;
                }
                host_call(&mut caller, |memory, env| started(memory, env, out))
            })
        },
    )?;
    linker.func_wrap_async(
        MODULE,
        SLEEP,
        |mut caller: Caller<'_, State>, (wake_us,): (i64,)| {
            Box::new(async move {
                let waiting = caller.data_mut().env.ask_sleep(wake_us).map_err(end_call)?;
                suspend(waiting).await;
                go_on(&mut caller);
                caller.data_mut().env.slept().map_err(end_call)
            })
        },
    )?;
    linker.func_wrap_async(
        MODULE,
        REQUEST,
        |mut caller: Caller<'_, State>,
         (request, request_len, body, body_len, out): (u32, u32, u32, u32, u32)| {
            Box::new(async move {
                let place = RequestPlace {
                    request: (request, request_len),
                    body: (body, body_len),
                    out,
                };
                let mut waiting = None;
                let asked = host_call(&mut caller, |memory, env| {
                    waiting = ask(memory, env, place)?;
                    Ok(0)
                })?;
                if asked != 0 {
                    return Ok(asked);
                }
                suspend(waiting).await;
                go_on(&mut caller);
                host_call(&mut caller, |memory, env| answered(memory, env, place))
            })
        },
    )?;
    Ok(())
}

/// The time does not count against the call.
fn block(caller: &mut Caller<'_, State>, waiting: Option<Waiting>) {
    if waiting.is_none() {
        return;
    }
    let env = &mut caller.data_mut().env;
    let call_ticks = ticks(env.limits().call_ms_max);
    env.block(waiting);
    caller.as_context_mut().set_epoch_deadline(call_ticks);
}

async fn suspend(waiting: Option<Waiting>) {
    if let Some(waiting) = waiting {
        // Dropped or sent: the wait is over.
        let _ = waiting.await;
    }
}

/// After a wait a call has its whole time again.
fn go_on(caller: &mut Caller<'_, State>) {
    let state = caller.data_mut();
    state.ticks_left = ticks(state.env.limits().call_ms_max);
}

fn started(memory: &mut [u8], env: &mut HostEnv, out: u32) -> Result<u32, AbiError> {
    let now = env.open_transaction()?;
    write(memory, out, &now.to_le_bytes())?;
    Ok(0)
}

fn ask(memory: &[u8], env: &mut HostEnv, place: RequestPlace) -> Result<Option<Waiting>, AbiError> {
    // A reducer has a transaction too, but no errno for this (03 §6.1).
    if !env.is_procedure() {
        return Err(HostTrap::AsyncOnly(REQUEST).into());
    }
    let head = slice(memory, place.request.0, place.request.1)?;
    let body = slice(memory, place.body.0, place.body.1)?;
    let Ok(request) = HttpRequest::decode(&mut Reader::new(head)) else {
        return Err(Errno::BSATN_DECODE_ERROR.into());
    };
    env.ask_http(request, body)
}

fn answered(memory: &mut [u8], env: &mut HostEnv, place: RequestPlace) -> Result<u32, AbiError> {
    let outcome = env.http_answer()?;
    match env.http_sources(outcome)? {
        HttpSources::Response(head, body) => {
            write_u32(memory, place.out, head)?;
            write_u32(memory, place.out.wrapping_add(4), body)?;
            Ok(0)
        }
        HttpSources::Failed(text) => {
            write_u32(memory, place.out, text)?;
            Ok(Errno::HTTP_ERROR.number().into())
        }
    }
}
