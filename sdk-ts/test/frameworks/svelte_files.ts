// Components of Svelte in Vite and in esbuild.

import { readFile } from "node:fs/promises";
import type { Plugin as EsbuildPlugin } from "esbuild";
import { compile } from "svelte/compiler";
import type { Plugin } from "vite";

const isComponent = /\.svelte$/;

export const svelteForVite: Plugin = {
  name: "svelte",
  transform: (source, file) =>
    isComponent.test(file) ? compile(source, { filename: file, generate: "client" }).js : undefined,
};

export const svelteForEsbuild = (generate: "client" | "server"): EsbuildPlugin => ({
  name: "svelte",
  setup(build) {
    build.onLoad({ filter: isComponent }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      return { contents: compile(source, { filename: path, generate }).js.code };
    });
  },
});
