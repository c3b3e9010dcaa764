import "@angular/compiler";
import {
  type ApplicationConfig,
  Component,
  computed,
  InjectionToken,
  inject,
  provideZonelessChangeDetection,
  signal,
  type Type,
} from "@angular/core";
import { bootstrapApplication, provideClientHydration } from "@angular/platform-browser";
import {
  injectProcedure,
  injectReducer,
  injectSpacetimeDB,
  injectSpacetimeDBConnected,
  injectTable,
  provideSpacetimeDB,
} from "../../src/angular";
import { type DbConnection, procedures, reducers, tables } from "../client/bindings";
import { callbacksOf, type House, type PageProps, peopleBelow, textOf } from "./page";

const PAGE = new InjectionToken<PageProps>("page");

class PageComponent {
  readonly limit = signal(10);
  readonly enabled = signal(true);
  readonly page = inject(PAGE);
  readonly state = injectSpacetimeDB();
  readonly isActive = injectSpacetimeDBConnected();
  readonly people = injectTable(() => peopleBelow(this.limit()), {
    ...callbacksOf(this.page),
    enabled: this.enabled,
  });
  readonly marks = injectTable(tables.mark);
  readonly text = computed(() => {
    const { rows, isLoading, error } = this.people();
    const state = { ...this.state(), isActive: this.isActive() };
    return textOf(this.page, state, { rows, isReady: !isLoading, error }, this.marks().rows.length);
  });

  constructor() {
    Object.assign(this.page.controls, {
      setLimit: (value: number) => this.limit.set(value),
      setEnabled: (value: boolean) => this.enabled.set(value),
      add: injectReducer(reducers.addPerson, this.page.limits),
      double: injectProcedure(procedures.doubleIt),
      connection: () => this.state().getConnection<DbConnection>(),
    });
  }
}

/** Compiled where it runs. */
export const App = Component({ selector: "app-root", template: "<p>{{ text() }}</p>" })(
  PageComponent,
) as Type<unknown>;

export const configOf = (page: PageProps, hydrates: boolean): ApplicationConfig => ({
  providers: [
    provideZonelessChangeDetection(),
    hydrates ? provideClientHydration() : [],
    { provide: PAGE, useValue: page },
    page.isOrphan ? [] : provideSpacetimeDB(page.builder),
  ],
});

export const angular: House = {
  name: "Angular",
  server: "angular.server.ts",
  async show(root, page, hydrates) {
    if (!hydrates) root.innerHTML = "<app-root></app-root>";
    const app = await bootstrapApplication(App, configOf(page, hydrates));
    return () => app.destroy();
  },
};
