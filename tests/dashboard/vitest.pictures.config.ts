import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["pictures/**/*.ts"], testTimeout: 300_000, hookTimeout: 300_000 },
});
