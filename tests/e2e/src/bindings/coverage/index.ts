// Bindings in the shape that `spacetime generate` writes for TypeScript (chapter 07 §8.1), written by hand.

/* eslint-disable */
/* tslint:disable */
import {
  DbConnectionBuilder as __DbConnectionBuilder,
  DbConnectionImpl as __DbConnectionImpl,
  SubscriptionBuilderImpl as __SubscriptionBuilderImpl,
  convertToAccessorMap as __convertToAccessorMap,
  makeQueryBuilder as __makeQueryBuilder,
  procedures as __procedures,
  reducerSchema as __reducerSchema,
  reducers as __reducers,
  schema as __schema,
  table as __table,
  type DbConnectionConfig as __DbConnectionConfig,
  type ErrorContextInterface as __ErrorContextInterface,
  type EventContextInterface as __EventContextInterface,
  type QueryBuilder as __QueryBuilder,
  type ReducerEventContextInterface as __ReducerEventContextInterface,
  type RemoteModule as __RemoteModule,
  type SubscriptionEventContextInterface as __SubscriptionEventContextInterface,
  type SubscriptionHandleImpl as __SubscriptionHandleImpl,
} from "spacetimedb";

import AddPlainReducer from "./add_plain_reducer";
import AnnounceReducer from "./announce_reducer";
import BanReducer from "./ban_reducer";
import CheckClaimsReducer from "./check_claims_reducer";
import CheckNumbersReducer from "./check_numbers_reducer";
import CheckShapesReducer from "./check_shapes_reducer";
import CheckSpecialsReducer from "./check_specials_reducer";
import EchoArgumentsReducer from "./echo_arguments_reducer";
import FailReducer from "./fail_reducer";
import PanicReducer from "./panic_reducer";
import RemovePlainReducer from "./remove_plain_reducer";
import SetMarkReducer from "./set_mark_reducer";
import UnbanReducer from "./unban_reducer";

import EveryNumberRow from "./every_number_table";
import EveryShapeRow from "./every_shape_table";
import EverySpecialRow from "./every_special_table";
import HappeningsRow from "./happenings_table";
import LifecycleRow from "./lifecycle_table";
import MarksRow from "./marks_table";
import OnlineRow from "./online_table";
import PlainSetRow from "./plain_set_table";

const tablesSchema = __schema({
  everyNumber: __table({
    name: 'every_number',
    indexes: [
      { accessor: 'id', name: 'every_number_id_idx_btree', algorithm: 'btree', columns: ['id'] },
    ],
    constraints: [
      { name: 'every_number_id_key', constraint: 'unique', columns: ['id'] },
    ],
  }, EveryNumberRow),
  everyShape: __table({
    name: 'every_shape',
    indexes: [
      { accessor: 'id', name: 'every_shape_id_idx_btree', algorithm: 'btree', columns: ['id'] },
    ],
    constraints: [
      { name: 'every_shape_id_key', constraint: 'unique', columns: ['id'] },
    ],
  }, EveryShapeRow),
  everySpecial: __table({
    name: 'every_special',
    indexes: [
      { accessor: 'id', name: 'every_special_id_idx_btree', algorithm: 'btree', columns: ['id'] },
    ],
    constraints: [
      { name: 'every_special_id_key', constraint: 'unique', columns: ['id'] },
    ],
  }, EverySpecialRow),
  happenings: __table({
    name: 'happenings',
    indexes: [],
    constraints: [],
    event: true,
  }, HappeningsRow),
  lifecycle: __table({
    name: 'lifecycle',
    indexes: [
      { accessor: 'id', name: 'lifecycle_id_idx_btree', algorithm: 'btree', columns: ['id'] },
    ],
    constraints: [
      { name: 'lifecycle_id_key', constraint: 'unique', columns: ['id'] },
    ],
  }, LifecycleRow),
  marks: __table({
    name: 'marks',
    indexes: [
      { accessor: 'id', name: 'marks_id_idx_btree', algorithm: 'btree', columns: ['id'] },
    ],
    constraints: [
      { name: 'marks_id_key', constraint: 'unique', columns: ['id'] },
    ],
  }, MarksRow),
  online: __table({
    name: 'online',
    indexes: [
      { accessor: 'connection_id', name: 'online_connection_id_idx_btree', algorithm: 'btree', columns: ['connectionId'] },
    ],
    constraints: [
      { name: 'online_connection_id_key', constraint: 'unique', columns: ['connectionId'] },
    ],
  }, OnlineRow),
  plainSet: __table({
    name: 'plain_set',
    indexes: [],
    constraints: [],
  }, PlainSetRow),
});

const reducersSchema = __reducers(
  __reducerSchema("add_plain", AddPlainReducer),
  __reducerSchema("announce", AnnounceReducer),
  __reducerSchema("ban", BanReducer),
  __reducerSchema("check_claims", CheckClaimsReducer),
  __reducerSchema("check_numbers", CheckNumbersReducer),
  __reducerSchema("check_shapes", CheckShapesReducer),
  __reducerSchema("check_specials", CheckSpecialsReducer),
  __reducerSchema("echo_arguments", EchoArgumentsReducer),
  __reducerSchema("fail", FailReducer),
  __reducerSchema("panic", PanicReducer),
  __reducerSchema("remove_plain", RemovePlainReducer),
  __reducerSchema("set_mark", SetMarkReducer),
  __reducerSchema("unban", UnbanReducer),
);

const proceduresSchema = __procedures();

const REMOTE_MODULE = {
  versionInfo: {
    cliVersion: "2.10.1" as const,
  },
  tables: tablesSchema.schemaType.tables,
  reducers: reducersSchema.reducersType.reducers,
  ...proceduresSchema,
} satisfies __RemoteModule<
  typeof tablesSchema.schemaType,
  typeof reducersSchema.reducersType,
  typeof proceduresSchema
>;

export const tables: __QueryBuilder<typeof tablesSchema.schemaType> = __makeQueryBuilder(tablesSchema.schemaType);
export const reducers = __convertToAccessorMap(reducersSchema.reducersType.reducers);

export type EventContext = __EventContextInterface<typeof REMOTE_MODULE>;
export type ReducerEventContext = __ReducerEventContextInterface<typeof REMOTE_MODULE>;
export type SubscriptionEventContext = __SubscriptionEventContextInterface<typeof REMOTE_MODULE>;
export type ErrorContext = __ErrorContextInterface<typeof REMOTE_MODULE>;
export type SubscriptionHandle = __SubscriptionHandleImpl<typeof REMOTE_MODULE>;

export class SubscriptionBuilder extends __SubscriptionBuilderImpl<typeof REMOTE_MODULE> {}

export class DbConnectionBuilder extends __DbConnectionBuilder<DbConnection> {}

export class DbConnection extends __DbConnectionImpl<typeof REMOTE_MODULE> {
  static builder = (): DbConnectionBuilder => {
    return new DbConnectionBuilder(REMOTE_MODULE, (config: __DbConnectionConfig<typeof REMOTE_MODULE>) => new DbConnection(config));
  };

  override subscriptionBuilder = (): SubscriptionBuilder => {
    return new SubscriptionBuilder(this);
  };
}
