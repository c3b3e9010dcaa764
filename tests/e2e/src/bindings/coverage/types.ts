// Bindings in the shape that `spacetime generate` writes for TypeScript (chapter 07 §8.1), written by hand.

/* eslint-disable */
/* tslint:disable */
import {
  TypeBuilder as __TypeBuilder,
  t as __t,
  type AlgebraicTypeType as __AlgebraicTypeType,
  type Infer as __Infer,
} from "spacetimedb";

export const Color = __t.enum("Color", {
  Red: __t.unit(),
  Green: __t.unit(),
  Blue: __t.unit(),
});
export type Color = __Infer<typeof Color>;

export const Point = __t.object("Point", {
  x: __t.i32(),
  y: __t.i32(),
});
export type Point = __Infer<typeof Point>;

export const Shape = __t.enum("Shape", {
  Nothing: __t.unit(),
  Circle: __t.f64(),
  Label: __t.string(),
  get Polygon() {
    return __t.array(Point);
  },
  get Tagged() {
    return Tagged;
  },
});
export type Shape = __Infer<typeof Shape>;

export const Tagged = __t.object("Tagged", {
  get color() {
    return Color;
  },
  note: __t.option(__t.string()),
});
export type Tagged = __Infer<typeof Tagged>;
