import { defineConfig } from "tsdown";

export default defineConfig({
  entry: {
    index: "src/client/index.ts",
    server: "src/server/index.ts",
    react: "src/react/index.ts",
  },
  format: ["esm", "cjs"],
  // A file for each module: bundlers leave out what an application does not import, file by file (`sideEffects: false`).
  unbundle: true,
  platform: "neutral",
  target: "es2022",
  dts: true,
  sourcemap: true,
  // The host supplies `spacetime:sys@…`, the application supplies React.
  external: [/^spacetime:sys/, "react", "react/jsx-runtime"],
  outExtensions: ({ format }) =>
    format === "cjs" ? { js: ".cjs", dts: ".d.cts" } : { js: ".mjs", dts: ".d.mts" },
});
