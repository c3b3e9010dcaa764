import { hydrate, mount, unmount } from "svelte";
import App from "./App.svelte";
import type { House } from "./page";

export const svelte: House = {
  name: "Svelte",
  server: "svelte.server.ts",
  show(root, page, hydrates) {
    const app = (hydrates ? hydrate : mount)(App, { target: root, props: { page } });
    return () => void unmount(app);
  },
};
