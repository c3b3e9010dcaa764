import { type App, createApp, createSSRApp, defineComponent, h, ref, shallowRef } from "vue";
import { SpacetimeDBProvider, useProcedure, useReducer, useSpacetimeDB, useTable } from "../../src/vue";
import { type DbConnection, procedures, reducers, tables } from "../client/bindings";
import { callbacksOf, type House, type PageProps, peopleBelow, textOf } from "./page";

const Page = defineComponent(
  ({ page }: { page: PageProps }) => {
    const state = useSpacetimeDB();
    const [limit, enabled] = [ref(10), ref(true)];
    const people = useTable(() => peopleBelow(limit.value), { ...callbacksOf(page), enabled });
    const [rows, isReady] = people;
    const [marks] = useTable(tables.mark);
    Object.assign(page.controls, {
      setLimit: (value: number) => (limit.value = value),
      setEnabled: (value: boolean) => (enabled.value = value),
      add: useReducer(reducers.addPerson, page.limits),
      double: useProcedure(procedures.doubleIt),
      connection: () => state.getConnection<DbConnection>(),
    });
    return () => {
      const result = { rows: rows.value, isReady: isReady.value, error: people.error.value };
      return h("p", textOf(page, state, result, marks.value.length));
    };
  },
  { props: ["page"] },
);

export function makeApp(page: PageProps, create: typeof createApp): App {
  const connectionBuilder = shallowRef(page.builder);
  page.controls.setBuilder = (value) => (connectionBuilder.value = value);
  const content = () => h(Page, { page });
  return create({
    render: () =>
      page.isOrphan
        ? content()
        : h(SpacetimeDBProvider, { connectionBuilder: connectionBuilder.value }, content),
  });
}

export const vue: House = {
  name: "Vue",
  server: "vue.server.ts",
  show(root, page, hydrates) {
    const app = makeApp(page, hydrates ? createSSRApp : createApp);
    app.config.errorHandler = (error) => {
      throw error;
    };
    app.mount(root);
    return () => app.unmount();
  },
};
