import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "test/**/*.test.tsx"],
    // These need a built server: `npm run test:server`.
    exclude: ["test/server/**", "node_modules/**"],
  },
});
