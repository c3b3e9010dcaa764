// `postgres_direct` through an ORM, for data-layer and data-layer-crm.

import type { ConnectorDefinition } from "./definition";
import { definition as postgresDirect } from "./postgres_direct";

export const definition: ConnectorDefinition = {
  ...postgresDirect,
  key: "postgres_drizzle_direct",
  async prepare(context) {
    const prepared = await postgresDirect.prepare(context);
    Object.assign(prepared.fairness, { orm: "Drizzle" });
    return prepared;
  },
};
