import { renderToString } from "react-dom/server";
import type { PageProps } from "./page";
import { tanstackTree } from "./react";

export const render = async (page: PageProps): Promise<string> => renderToString(tanstackTree(page));
