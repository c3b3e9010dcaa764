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
  u8Value: __t.u8().name("u_8_value"),
  u16Value: __t.u16().name("u_16_value"),
  u32Value: __t.u32().name("u_32_value"),
  u64Value: __t.u64().name("u_64_value"),
  u128Value: __t.u128().name("u_128_value"),
  u256Value: __t.u256().name("u_256_value"),
  i8Value: __t.i8().name("i_8_value"),
  i16Value: __t.i16().name("i_16_value"),
  i32Value: __t.i32().name("i_32_value"),
  i64Value: __t.i64().name("i_64_value"),
  i128Value: __t.i128().name("i_128_value"),
  i256Value: __t.i256().name("i_256_value"),
  f32Value: __t.f32().name("f_32_value"),
  f64Value: __t.f64().name("f_64_value"),
  flag: __t.bool(),
});
