// content-crud on the HTTP handlers of the modules `content-ts` and `content-rs` (section 16.3): the client of the REST
// servers, but the id is in the query, as routes have no parameters.

import { type Config, httpUrl } from "../config";
import { NotRunning } from "./connector";
import type { ConnectorDefinition } from "./definition";
import { httpSoftware, httpTransport } from "./http_client";
import { RestConnector } from "./rest";
import { httpDurability, stdbDefinition } from "./stdb";
import { databaseOf } from "./test_module";

const key = "spacetimedb_http";

/** In this directory of `modules`, e.g. `content-ts`. */
export function routesDefinition(directory: string, moduleLanguage: string): ConnectorDefinition {
  const database = (config: Config) => databaseOf(config, directory.replace(/-ts$/, ""));
  return stdbDefinition({
    key,
    module: (config) => ({ path: `../modules/${directory}`, database: database(config) }),
    connect: (config, address) => {
      const name = encodeURIComponent(database(config));
      return new RestConnector(key, `${httpUrl(address)}/v1/database/${name}/route`);
    },
    transport: httpTransport(),
    clientSoftware: httpSoftware(),
    moduleLanguage,
    seeds: false,
    durability: httpDurability,
    check: (connector) => hasRoutes(connector as RestConnector),
  });
}

/** The handler says by JSON what it did not find, a server without handlers says something else. */
async function hasRoutes(connector: RestConnector): Promise<void> {
  const answer = await connector.request("GET", "/content?id=none").catch(() => undefined);
  if (answer?.status === 404) return;
  throw new NotRunning(
    "the server runs no HTTP handlers of modules, which this test needs: start one that does",
  );
}

export const definition = routesDefinition("content-ts", "TypeScript");
