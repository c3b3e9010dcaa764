// Bindings in the shape that `spacetime generate` writes for TypeScript (chapter 07 §8.1), written by hand.

/* eslint-disable */
/* tslint:disable */
import {
  TypeBuilder as __TypeBuilder,
  t as __t,
  type AlgebraicTypeType as __AlgebraicTypeType,
  type Infer as __Infer,
} from "spacetimedb";
import {
  Color,
  Point,
  Shape,
} from "./types";

export default {
  flag: __t.bool(),
  number: __t.i64(),
  large: __t.u128(),
  text: __t.string(),
  bytes: __t.byteArray(),
  get point() {
    return Point;
  },
  get color() {
    return Color;
  },
  get shape() {
    return Shape;
  },
  maybe: __t.option(__t.u32()),
  identity: __t.identity(),
  timestamp: __t.timestamp(),
};
