// The globals that a module finds besides those of the language (spec 04 §2).
// `encode(string)` gives the UTF-8 bytes of a string; `decode(bytes, fatal)` the string of a buffer or view, or throws a
// TypeError if `fatal` is true and the bytes are not UTF-8.
(function (encode, decode) {
  'use strict';
  // A module may replace these, and what is thrown should be what the language throws. There are no templates below: QuickJS
  // calls `String.prototype.concat` for them.
  const { RangeError, TypeError, String, Boolean } = globalThis;
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });

  define('TextEncoder', class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(input = '') {
      if (typeof input === 'symbol') {
        throw new TypeError('Cannot convert a Symbol value to a string');
      }
      return encode(typeof input === 'string' ? input : String(input));
    }
  });

  define('TextDecoder', class TextDecoder {
    #fatal;
    constructor(label = 'utf-8', options = undefined) {
      if (label !== 'utf-8') {
        throw new RangeError('The encoding label "' + String(label) + '" is not supported; only "utf-8" is.');
      }
      if (options === undefined) {
        this.#fatal = false;
        return;
      }
      if (options?.ignoreBOM) {
        throw new TypeError('The option ignoreBOM is not supported.');
      }
      this.#fatal = Boolean(options?.fatal);
    }
    get encoding() {
      return 'utf-8';
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return false;
    }
    decode(input = undefined, options = undefined) {
      if (options?.stream) {
        throw new TypeError('The option stream is not supported.');
      }
      return input === undefined ? '' : decode(input, this.#fatal);
    }
  });

  Object.defineProperty(Math, 'random', {
    get() {
      throw new TypeError('Math.random is not available in SpacetimeDB modules. Use ctx.random instead.');
    },
    set: undefined,
    enumerable: false,
    configurable: true,
  });
})
