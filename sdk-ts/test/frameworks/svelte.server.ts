import { render as renderOnServer } from "svelte/server";
import App from "./App.svelte";
import type { PageProps } from "./page";

export const render = async (page: PageProps): Promise<string> =>
  renderOnServer(App, { props: { page } }).body;
