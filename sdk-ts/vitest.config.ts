import { defineConfig } from "vitest/config";
import { svelteForVite } from "./test/frameworks/svelte_files";

export default defineConfig({
  plugins: [svelteForVite],
  // Svelte and Solid have other files for servers, which Node would load.
  resolve: { conditions: ["browser"] },
  test: {
    server: { deps: { inline: ["solid-js", "svelte"] } },
    // Generous, since the machine may be busy with other things.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    include: ["test/**/*.test.ts", "test/**/*.test.tsx"],
    // These need a built server: `npm run test:server`.
    exclude: ["test/server/**", "node_modules/**"],
  },
});
