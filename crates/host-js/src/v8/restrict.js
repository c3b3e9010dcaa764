// Takes away what would let a module use memory that its limits do not see: V8 allocates the memory of WebAssembly and of
// resizable buffers by itself, outside of the heap and of the allocator for buffers.
(() => {
  'use strict';
  delete globalThis.WebAssembly;
  for (const name of ['ArrayBuffer', 'SharedArrayBuffer']) {
    const Native = globalThis[name];
    const Fixed = new Proxy(Native, {
      construct(target, args, newTarget) {
        if (args[1]?.maxByteLength !== undefined) {
          throw new RangeError(`a resizable ${name} is not available in modules`);
        }
        return Reflect.construct(target, args.slice(0, 1), newTarget === Fixed ? target : newTarget);
      },
    });
    const attributes = { value: Fixed, writable: true, enumerable: false, configurable: true };
    Object.defineProperty(Native.prototype, 'constructor', attributes);
    Object.defineProperty(globalThis, name, attributes);
  }
})();
