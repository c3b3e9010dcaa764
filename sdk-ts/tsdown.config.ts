import { defineConfig } from "tsdown";

export default defineConfig({
  entry: {
    index: "src/client/index.ts",
    server: "src/server/index.ts",
    react: "src/react/index.ts",
    vue: "src/vue/index.ts",
    solid: "src/solid/index.ts",
    svelte: "src/svelte/index.ts",
    angular: "src/angular/index.ts",
    tanstack: "src/tanstack/index.ts",
    "tanstack-db": "src/tanstack-db/index.ts",
    typed: "src/typed/index.ts",
    testing: "src/testing/index.ts",
  },
  format: ["esm", "cjs"],
  // A file for each module: bundlers leave out what an application does not import, file by file (`sideEffects: false`).
  unbundle: true,
  platform: "neutral",
  target: "es2022",
  dts: true,
  sourcemap: true,
  // The host supplies `spacetime:sys@…`. The application supplies its framework, as peer dependency.
  external: [/^spacetime:sys/, /^node:/],
  outExtensions: ({ format }) =>
    format === "cjs" ? { js: ".cjs", dts: ".d.cts" } : { js: ".mjs", dts: ".d.mts" },
});
