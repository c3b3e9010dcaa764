//! Host calls that wait or may do so (spec 03 §10, §13), for instances that block their thread and for those that are suspended.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use lightcone_host::clock::ticks;
use lightcone_host::{AbiError, Errno, HostEnv, HostTrap, HttpRequest, HttpSources, Waiting};
use lightcone_types::bsatn::{Decode as _, Reader};
use wasmtime::{AsContextMut as _, Caller, Linker, Store, TypedFunc, WasmParams, WasmResults};

use crate::memory::{slice, text, write, write_u32};
use crate::state::{host_call, State};
use crate::trap::end_call;

/// How a host call waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Its thread is blocked.
    Blocking,
    /// Its thread has other calls meanwhile.
    Suspending,
}

/// The result of a future that is never suspended: with [`Waits::Blocking`] it blocks the thread instead.
pub(crate) fn at_once<R>(future: impl Future<Output = R>) -> R {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("what blocks its thread is never suspended"),
    }
}

/// Defines host calls that wait, in the way that `waits` says.
macro_rules! waiting {
    ($linker:ident, $waits:ident; $($version:literal $name:literal $function:ident($($arg:ident: $arg_type:ty),*))*) => {$(
        match $waits {
            Waits::Blocking => $linker.func_wrap(
                concat!("spacetime_", $version),
                $name,
                |caller: Caller<'_, State>, $($arg: $arg_type),*| {
                    at_once($function(caller, ($($arg,)*), Waits::Blocking))
                },
            )?,
            Waits::Suspending => $linker.func_wrap_async(
                concat!("spacetime_", $version),
                $name,
                |caller: Caller<'_, State>, arguments: ($($arg_type,)*)| {
                    Box::new($function(caller, arguments, Waits::Suspending))
                },
            )?,
        };
    )*};
}

pub(crate) fn define(linker: &mut Linker<State>, waits: Waits) -> wasmtime::Result<()> {
    waiting! { linker, waits;
        "10.3" "procedure_start_mut_tx" start(out: u32)
        "10.3" "procedure_commit_mut_tx" commit()
        "10.3" "procedure_sleep_until" sleep(wake_us: i64)
        "10.3" "procedure_http_request" request(head: u32, head_len: u32, body: u32, body_len: u32, out: u32)
        "10.6" "env_get" variable(key: u32, key_len: u32, out: u32)
    }
    Ok(())
}

/// Runs the first part of a host call that waits. Its answer, if it ends with that, or what to wait for.
fn asked(
    caller: &mut Caller<'_, State>,
    ask: impl FnOnce(&[u8], &mut HostEnv) -> Result<Option<Waiting>, AbiError>,
) -> wasmtime::Result<Result<Option<Waiting>, u32>> {
    let mut waiting = None;
    let answer = host_call(caller, |memory, env| {
        waiting = ask(memory, env)?;
        Ok(0)
    })?;
    Ok(match answer {
        0 => Ok(waiting),
        errno => Err(errno),
    })
}

/// Of a host call.
type Answer<R = u32> = wasmtime::Result<R>;

async fn start(mut caller: Caller<'_, State>, (out,): (u32,), waits: Waits) -> Answer {
    match asked(&mut caller, |_, env| env.ask_transaction())? {
        Ok(waiting) => waits.turn(&mut caller, waiting).await,
        Err(errno) => return Ok(errno),
    }
    caller.data_mut().begin_transaction();
    host_call(&mut caller, |memory, env| {
        let now = env.open_transaction()?;
        write(memory, out, &now.to_le_bytes())?;
        Ok(0)
    })
}

async fn commit(mut caller: Caller<'_, State>, (): (), waits: Waits) -> Answer {
    match asked(&mut caller, |_, env| env.ask_commit())? {
        Ok(waiting) => waits.turn(&mut caller, waiting).await,
        Err(errno) => return Ok(errno),
    }
    host_call(&mut caller, |_, env| env.commit_transaction().map(|()| 0))
}

async fn sleep(mut caller: Caller<'_, State>, (us,): (i64,), waits: Waits) -> Answer<i64> {
    let waiting = caller.data_mut().env.ask_sleep(us).map_err(end_call)?;
    waits.wait(&mut caller, waiting).await;
    caller.data_mut().env.slept().map_err(end_call)
}

/// At places in guest memory: the request and its body, with their lengths, and the answer.
type RequestPlace = (u32, u32, u32, u32, u32);

async fn request(mut caller: Caller<'_, State>, place: RequestPlace, waits: Waits) -> Answer {
    match asked(&mut caller, |memory, env| ask(memory, env, place))? {
        Ok(waiting) => waits.wait(&mut caller, waiting).await,
        Err(errno) => return Ok(errno),
    }
    host_call(&mut caller, |memory, env| answered(memory, env, place.4))
}

/// A procedure without a transaction waits for the tables, and has given them back when it goes on.
async fn variable(
    mut caller: Caller<'_, State>,
    (key, key_len, out): (u32, u32, u32),
    waits: Waits,
) -> Answer {
    let asked = asked(&mut caller, |memory, env| {
        HostEnv::check_variable_length(key_len as usize)?;
        env.ask_variable(text(memory, key, key_len)?)
    });
    match asked? {
        Ok(waiting) => waits.turn(&mut caller, waiting).await,
        Err(errno) => return Ok(errno),
    }
    host_call(&mut caller, |memory, env| {
        let source = env.variable_source(text(memory, key, key_len)?)?;
        write_u32(memory, out, source)?;
        Ok(0)
    })
}

impl Waits {
    /// Calls an export, in whose host calls waits are of this kind.
    pub(crate) async fn call<P: WasmParams + Sync, R: WasmResults + Sync>(
        self,
        function: &TypedFunc<P, R>,
        store: &mut Store<State>,
        params: P,
    ) -> wasmtime::Result<R> {
        match self {
            Waits::Blocking => function.call(store, params),
            Waits::Suspending => function.call_async(store, params).await,
        }
    }

    /// Waits for the tables, or for the end of a transaction.
    async fn turn(self, caller: &mut Caller<'_, State>, waiting: Option<Waiting>) {
        match (self, waiting) {
            (Waits::Blocking, waiting) => block(caller, waiting),
            // Dropped or sent: the wait is over.
            (Waits::Suspending, Some(waiting)) => drop(waiting.await),
            (Waits::Suspending, None) => {}
        }
    }

    /// Waits for something outside. Afterwards a call has its whole time again.
    async fn wait(self, caller: &mut Caller<'_, State>, waiting: Option<Waiting>) {
        self.turn(caller, waiting).await;
        let state = caller.data_mut();
        state.ticks_left = ticks(state.env.limits().call_ms_max);
    }
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

fn ask(
    memory: &[u8],
    env: &mut HostEnv,
    (request, request_len, body, body_len, _): RequestPlace,
) -> Result<Option<Waiting>, AbiError> {
    // A reducer has a transaction too, but no errno for this (03 §6.1).
    if !env.is_procedure() {
        return Err(HostTrap::AsyncOnly("procedure_http_request").into());
    }
    let head = slice(memory, request, request_len)?;
    let body = slice(memory, body, body_len)?;
    let Ok(request) = HttpRequest::decode(&mut Reader::new(head)) else {
        return Err(Errno::BSATN_DECODE_ERROR.into());
    };
    env.ask_http(request, body)
}

fn answered(memory: &mut [u8], env: &mut HostEnv, out: u32) -> Result<u32, AbiError> {
    let answer = env.http_answer()?;
    match env.http_sources(answer)? {
        HttpSources::Response(head, body) => {
            write_u32(memory, out, head)?;
            write_u32(memory, out.wrapping_add(4), body)?;
            Ok(0)
        }
        HttpSources::Failed(text) => {
            write_u32(memory, out, text)?;
            Ok(Errno::HTTP_ERROR.number().into())
        }
    }
}
