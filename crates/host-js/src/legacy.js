// The virtual modules `spacetime:sys@1.x` (spec 04 §10), made of the functions of version 2: programs of the 1.x packages
// import other names for the same things, give bytes as arrays of their own, and hand their hooks over by calls.
// `sys` has the functions of version 2, `moduleHooks` is the symbol of its hooks. The result has the exports of each version
// under its number, and under `default` what a program of version 2 exports there, once hooks were registered.
(function (sys, moduleHooks) {
  'use strict';
  // A module may replace these.
  const { ArrayBuffer, DataView, Object, TypeError, Uint8Array } = globalThis;

  // The most that one step of an iterator allocates, however much the program says that it takes.
  const STEP_BYTES_MAX = 1 << 18;
  const HTTP_ERROR = 21;

  const bytes = (value) => {
    if (!(value instanceof Uint8Array)) {
      throw new TypeError(`Expected \`Uint8Array\`, got ${value === null ? 'null' : typeof value}`);
    }
    return value;
  };

  // The arrays one behind the other, in a buffer that begins with them.
  const joined = (...arrays) => {
    const all = new Uint8Array(arrays.reduce((length, array) => length + bytes(array).length, 0));
    let at = 0;
    for (const array of arrays) {
      all.set(array, at);
      at += array.length;
    }
    return all;
  };

  // The host writes what it generated over the start of the row.
  const written = (row, write) => {
    const copy = joined(row);
    const length = write(copy.buffer, copy.length);
    return copy.slice(0, length);
  };

  const range = (call) => (index, prefix, prefixElements, start, end) => {
    const all = joined(prefix, start, end);
    return call(index, all.buffer, prefix.length, prefixElements, start.length, end.length);
  };

  const point = (call) => (index, key) => {
    const copy = joined(key);
    return call(index, copy.buffer, copy.length);
  };

  const step = (iterator, length) => {
    const buffer = new ArrayBuffer(length);
    const result = sys.row_iter_bsatn_advance(iterator, buffer);
    return { 0: result <= 0, 1: new Uint8Array(buffer, 0, result < 0 ? -result : result) };
  };

  const advance = (iterator, lengthMax) => {
    if (typeof lengthMax !== 'number' || lengthMax !== lengthMax >>> 0) {
      throw new TypeError(`Expected number for \`u32\`, got ${typeof lengthMax}`);
    }
    try {
      return step(iterator, lengthMax < STEP_BYTES_MAX ? lengthMax : STEP_BYTES_MAX);
    } catch (error) {
      const needed = error?.__buffer_too_small__;
      // A row that is larger than our bound, and not than the program's.
      if (needed > STEP_BYTES_MAX && needed <= lengthMax) {
        return step(iterator, needed);
      }
      throw error;
    }
  };

  const registered = Object.create(null);
  const versions = new Set();

  const registerFor = (version, names) => (hooks) => {
    if (versions.has(version)) {
      throw new TypeError('cannot call `register_hooks` multiple times');
    }
    if (hooks === null || typeof hooks !== 'object') {
      throw new TypeError(`Expected hooks object, got ${hooks === null ? 'null' : typeof hooks}`);
    }
    const found = Object.create(null);
    for (const name of names) {
      found[name] = hooks[name];
      if (typeof found[name] !== 'function') {
        throw new TypeError(`Expected module function hook \`${name}\`, got ${typeof found[name]}`);
      }
    }
    versions.add(version);
    Object.assign(registered, found);
  };

  const exports = {
    '1.0': {
      register_hooks: registerFor('1.0', ['__describe_module__', '__call_reducer__']),
      table_id_from_name: sys.table_id_from_name,
      index_id_from_name: sys.index_id_from_name,
      datastore_table_row_count: sys.datastore_table_row_count,
      datastore_table_scan_bsatn: sys.datastore_table_scan_bsatn,
      datastore_index_scan_range_bsatn: range(sys.datastore_index_scan_range_bsatn),
      row_iter_bsatn_advance: advance,
      row_iter_bsatn_close: sys.row_iter_bsatn_close,
      datastore_insert_bsatn: (table, row) =>
        written(row, (buffer, length) => sys.datastore_insert_bsatn(table, buffer, length)),
      datastore_update_bsatn: (table, index, row) =>
        written(row, (buffer, length) => sys.datastore_update_bsatn(table, index, buffer, length)),
      datastore_delete_by_index_scan_range_bsatn: range(sys.datastore_delete_by_index_scan_range_bsatn),
      datastore_delete_all_by_eq_bsatn: (table, relation) => {
        const copy = joined(relation);
        return sys.datastore_delete_all_by_eq_bsatn(table, copy.buffer, copy.length);
      },
      volatile_nonatomic_schedule_immediate: sys.volatile_nonatomic_schedule_immediate,
      // As it is: its caller's caller goes into the log.
      console_log: sys.console_log,
      console_timer_start: sys.console_timer_start,
      console_timer_end: sys.console_timer_end,
      identity: () => ({ __identity__: sys.identity() }),
      get_jwt_payload: sys.get_jwt_payload,
    },
    '1.1': { register_hooks: registerFor('1.1', ['__call_view__', '__call_view_anon__']) },
    '1.2': {
      register_hooks: registerFor('1.2', ['__call_procedure__']),
      procedure_http_request: sys.procedure_http_request,
      procedure_start_mut_tx: sys.procedure_start_mut_tx,
      procedure_abort_mut_tx: sys.procedure_abort_mut_tx,
      procedure_commit_mut_tx: sys.procedure_commit_mut_tx,
    },
    '1.3': {
      datastore_index_scan_point_bsatn: point(sys.datastore_index_scan_point_bsatn),
      datastore_delete_by_index_scan_point_bsatn: point(sys.datastore_delete_by_index_scan_point_bsatn),
    },
  };

  // ---- Hooks of version 2 over the registered ones ------------------------------------------------------------------------

  // What a reducer returned as its error. No module can throw one.
  class Refusal {
    constructor(message) {
      this.message = message;
    }
  }

  // Traces end in front of a function of this name, so they have none of ours. `this` of the hook is undefined.
  const __spacetimedb_end_short_backtrace = (name, ...parameters) => {
    const hook = registered[name];
    if (hook === undefined) {
      throw new TypeError(`the module has registered no hook \`${name}\``);
    }
    return hook(...parameters);
  };
  const call = __spacetimedb_end_short_backtrace;

  const viewResult = (result) => {
    if (!(result instanceof Uint8Array)) {
      return result;
    }
    // Rows alone: the header that says so is one zero.
    const data = new Uint8Array(result.length + 1);
    data.set(result, 1);
    return { data };
  };

  const hooks = {
    __describe_module__: () => call('__describe_module__'),
    // Exceptions of the host are no errors here, but sealed objects.
    __get_error_constructor__: (code) =>
      function HostError(message) {
        const error = { __code_error__: code };
        if (code === HTTP_ERROR) {
          error.__error_message__ = message;
        }
        return Object.seal(error);
      },
    __sender_error_class__: Refusal,
    __call_reducer__(id, sender, connection, timestamp, view) {
      const parameters = new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
      const result = call('__call_reducer__', id, sender, connection, timestamp, parameters);
      if (result?.tag === 'err') {
        throw new Refusal(`${result.value}`);
      }
      if (result?.tag !== 'ok') {
        throw new TypeError("Reducer returned neither { tag: 'ok' } nor { tag: 'err' }");
      }
    },
    __call_view__: (...parameters) => viewResult(call('__call_view__', ...parameters)),
    __call_view_anon__: (...parameters) => viewResult(call('__call_view_anon__', ...parameters)),
    __call_procedure__: (...parameters) => call('__call_procedure__', ...parameters),
  };

  Object.defineProperty(exports, 'default', {
    get: () => (versions.size === 0 ? undefined : { [moduleHooks]: () => hooks }),
  });
  return exports;
})
