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

export default __t.row({
  id: __t.u32().primaryKey(),
  text: __t.string(),
  bytes: __t.byteArray(),
  numbers: __t.array(__t.u16()),
  texts: __t.array(__t.string()),
  get nested() {
    return __t.array(__t.array(Point));
  },
  get point() {
    return Point;
  },
  get color() {
    return Color;
  },
  get shape() {
    return Shape;
  },
  maybeNumber: __t.option(__t.i64()).name("maybe_number"),
  get maybeShape() {
    return __t.option(Shape).name("maybe_shape");
  },
  maybeMaybe: __t.option(__t.option(__t.u8())).name("maybe_maybe"),
  outcome: __t.result(__t.u32(), __t.string()),
  nothing: __t.unit(),
});
