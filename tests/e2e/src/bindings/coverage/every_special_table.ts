// Bindings in the shape that `spacetime generate` writes for TypeScript (chapter 07 §8.1), written by hand.

/* eslint-disable */
/* tslint:disable */
import {
  TypeBuilder as __TypeBuilder,
  t as __t,
  type AlgebraicTypeType as __AlgebraicTypeType,
  type Infer as __Infer,
} from "spacetimedb";

export default __t.row({
  id: __t.u32().primaryKey(),
  identity: __t.identity(),
  connectionId: __t.connectionId().name("connection_id"),
  timestamp: __t.timestamp(),
  duration: __t.timeDuration(),
  uuid: __t.uuid(),
  schedule: __t.scheduleAt(),
});
