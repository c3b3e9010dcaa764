import { createSSRApp } from "vue";
import { renderToString } from "vue/server-renderer";
import type { PageProps } from "./page";
import { makeApp } from "./vue";

export const render = (page: PageProps): Promise<string> => renderToString(makeApp(page, createSSRApp));
