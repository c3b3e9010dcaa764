// Bindings in the shape that `spacetime generate` writes for TypeScript (chapter 07 §8.1), written by hand.

/* eslint-disable */
/* tslint:disable */
import {
  TypeBuilder as __TypeBuilder,
  t as __t,
  type AlgebraicTypeType as __AlgebraicTypeType,
  type Infer as __Infer,
} from "spacetimedb";

export default {
  message: __t.string(),
};
