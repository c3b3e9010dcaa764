import { createComponent } from "solid-js";
import { renderToString } from "solid-js/web";
import type { PageProps } from "./page";
import { App } from "./solid";

export const render = async (page: PageProps): Promise<string> =>
  renderToString(() => createComponent(App, { page }));
