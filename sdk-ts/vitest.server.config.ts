import { defineConfig } from "vitest/config";

// Tests that need a built server; the others need nothing.
export default defineConfig({
  test: {
    include: ["test/server/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
