import { renderToString } from "react-dom/server";
import type { PageProps } from "./page";
import { reactTree } from "./react";

export const render = async (page: PageProps): Promise<string> => renderToString(reactTree(page));
