// The globals that QuickJS lacks, or has otherwise than modules may have them (spec 04 §2).
(() => {
  'use strict';
  const { TypeError } = globalThis;
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });

  // Its methods do nothing; the library replaces it.
  const methods =
    'assert clear count countReset debug dir dirxml error group groupCollapsed groupEnd info log table time timeEnd timeLog trace warn';
  define('console', {});
  for (const name of methods.split(' ')) {
    const value = { [name]() {} }[name];
    Object.defineProperty(console, name, { value, writable: true, enumerable: false, configurable: true });
  }

  // It never calls back, as the language allows. Host handles are closed at the end of each call; a late callback could hit a
  // reused handle.
  define('FinalizationRegistry', class FinalizationRegistry {
    constructor(cleanup) {
      if (typeof cleanup !== 'function') {
        throw new TypeError('FinalizationRegistry: cleanup must be callable');
      }
    }
    register(target) {
      const kind = typeof target;
      if (target === null || (kind !== 'object' && kind !== 'function' && kind !== 'symbol')) {
        throw new TypeError('FinalizationRegistry.prototype.register: invalid target');
      }
    }
    unregister() {
      return false;
    }
  });

  delete globalThis.queueMicrotask;
  // QuickJS writes ten frames by default, and 64 at most.
  Error.stackTraceLimit = 64;
})()
