// Takes away what would let a module use memory that its limits do not see: V8 allocates the memory of WebAssembly and of
// resizable buffers by itself, outside of the heap and of the allocator for buffers.
//
// It runs before any code of the module. All that it needs later is captured here, as a module may replace every global and
// every method. Should a module still find a way to such a buffer, the host ends the call (`isolate.rs`, `count_use`).
(() => {
  'use strict';
  const { construct, defineProperty, deleteProperty, getPrototypeOf } = Reflect;
  const { RangeError } = globalThis;

  deleteProperty(globalThis, 'WebAssembly');
  // Each call would leave an entry in a list outside of the heap. Nothing would ever answer it.
  deleteProperty(Atomics, 'waitAsync');

  for (const name of ['ArrayBuffer', 'SharedArrayBuffer']) {
    const Native = globalThis[name];
    const text = `a resizable ${name} is not available in modules`;
    const Fixed = new Proxy(Native, {
      __proto__: null,
      construct(target, args, newTarget) {
        // Elements that are not there would be looked up in prototypes, which the module may have changed.
        const length = args.length > 0 ? args[0] : undefined;
        const options = args.length > 1 ? args[1] : undefined;
        const isObject = (typeof options === 'object' && options !== null) || typeof options === 'function';
        if (isObject && options.maxByteLength !== undefined) {
          throw new RangeError(text);
        }
        return construct(target, [length], newTarget === Fixed ? target : newTarget);
      },
    });
    const attributes = { value: Fixed, writable: true, enumerable: false, configurable: true };
    defineProperty(Native.prototype, 'constructor', attributes);
    defineProperty(globalThis, name, attributes);
  }

  // Frames of stack traces show functions of sloppy code. Those behind these constructors must not be among them in any version.
  Error.prepareStackTrace = (_error, sites) => sites;
  const sites = getPrototypeOf(new Error().stack[0]);
  deleteProperty(Error, 'prepareStackTrace');
  for (const name of ['getFunction', 'getThis']) {
    const value = { [name]() {} }[name];
    defineProperty(sites, name, { value, writable: true, enumerable: false, configurable: true });
  }
})();
