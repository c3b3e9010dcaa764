import "@angular/compiler";
import { mergeApplicationConfig } from "@angular/core";
import { bootstrapApplication } from "@angular/platform-browser";
import { provideServerRendering, renderApplication } from "@angular/platform-server";
import { App, configOf } from "./angular";
import type { PageProps } from "./page";

export async function render(page: PageProps): Promise<string> {
  const config = mergeApplicationConfig(configOf(page, true), { providers: [provideServerRendering()] });
  const html = await renderApplication((context) => bootstrapApplication(App, config, context), {
    document: "<body><app-root></app-root></body>",
    url: "/",
  });
  return /<body[^>]*>(.*)<\/body>/s.exec(html)![1]!;
}
