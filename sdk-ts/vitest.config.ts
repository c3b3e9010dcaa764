import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // Generous, since the machine may be busy with other things.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    include: ["test/**/*.test.ts", "test/**/*.test.tsx"],
    // These need a built server: `npm run test:server`.
    exclude: ["test/server/**", "node_modules/**"],
  },
});
