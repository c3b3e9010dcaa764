// Package `lightcone/testing`: modules in tests, on a real server that keeps its data in memory. For Node only.

export {
  type ConnectOptions,
  type TestConnectionBuilder,
  type TestConnectionClass,
  TestDatabase,
  type TestRow,
} from "./database";
export type { TestUser } from "./keys";
export { TestModule } from "./module";
export { stopTestServers, type TestServerOptions } from "./server";
export { until } from "./until";
