// Bindings of a small module, in the shape that `spacetime generate` writes.

import {
  convertToAccessorMap as __convertToAccessorMap,
  DbConnectionBuilder as __DbConnectionBuilder,
  type DbConnectionConfig as __DbConnectionConfig,
  DbConnectionImpl as __DbConnectionImpl,
  makeQueryBuilder as __makeQueryBuilder,
  procedureSchema as __procedureSchema,
  procedures as __procedures,
  type QueryBuilder as __QueryBuilder,
  type RemoteModule as __RemoteModule,
  reducerSchema as __reducerSchema,
  reducers as __reducers,
  SubscriptionBuilderImpl as __SubscriptionBuilderImpl,
  schema as __schema,
  t as __t,
  table as __table,
} from "../../src/client";

const tablesSchema = __schema({
  person: __table(
    {
      name: "person",
      indexes: [
        { accessor: "byName", name: "person_name_idx", algorithm: "btree", columns: ["name"] },
        { accessor: "byNameAndId", name: "person_both_idx", algorithm: "btree", columns: ["name", "id"] },
      ],
      constraints: [{ name: "person_id_key", constraint: "unique", columns: ["id"] }],
    },
    __t.row({ id: __t.u32().primaryKey(), name: __t.string() }),
  ),
  mark: __table(
    { name: "mark", indexes: [], constraints: [] },
    __t.row({ id: __t.u32(), name: __t.string() }),
  ),
  badge: __table(
    { name: "badge", indexes: [], constraints: [] },
    __t.row({
      owner: __t.identity().primaryKey(),
      serial: __t.u64().unique(),
      isGold: __t.bool().name("is_gold"),
    }),
  ),
  boom: __table({ name: "boom", indexes: [], constraints: [], event: true }, __t.row({ id: __t.u32() })),
});

const reducersSchema = __reducers(
  __reducerSchema("add_person", { id: __t.u32(), name: __t.string() }),
  __reducerSchema("tick", {}),
);

const proceduresSchema = __procedures(__procedureSchema("double_it", { value: __t.u32() }, __t.u64()));

const REMOTE_MODULE = {
  versionInfo: { cliVersion: "2.10.1" as const },
  tables: tablesSchema.schemaType.tables,
  reducers: reducersSchema.reducersType.reducers,
  ...proceduresSchema,
} satisfies __RemoteModule<
  typeof tablesSchema.schemaType,
  typeof reducersSchema.reducersType,
  typeof proceduresSchema
>;

export const tables: __QueryBuilder<typeof tablesSchema.schemaType> = __makeQueryBuilder(
  tablesSchema.schemaType,
);
export const procedures = __convertToAccessorMap(proceduresSchema.procedures);
export const reducers = __convertToAccessorMap(reducersSchema.reducersType.reducers);

export class SubscriptionBuilder extends __SubscriptionBuilderImpl<typeof REMOTE_MODULE> {}
export class DbConnectionBuilder extends __DbConnectionBuilder<DbConnection> {}
export class DbConnection extends __DbConnectionImpl<typeof REMOTE_MODULE> {
  static builder = (): DbConnectionBuilder =>
    new DbConnectionBuilder(
      REMOTE_MODULE,
      (config: __DbConnectionConfig<typeof REMOTE_MODULE>) => new DbConnection(config),
    );

  override subscriptionBuilder = (): SubscriptionBuilder => new SubscriptionBuilder(this);
}
