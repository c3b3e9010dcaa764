import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // One at a time: each installs packages, compiles and may start a browser.
    pool: "forks",
    poolOptions: { forks: { singleFork: true } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    reporters: process.env.CI ? ["default"] : ["verbose"],
  },
});
