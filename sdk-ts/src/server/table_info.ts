import type { AlgebraicTypeType, ProductTypeType, TypespaceType } from "../core/type_tree";
import type { AnyFunction } from "../core/untyped";
import type { FastSys } from "./sys";

/** The definition of a table for its functions. */
export interface TableInfo {
  readonly tableId: number;
  readonly typespace: TypespaceType;
  readonly row: AlgebraicTypeType;
  readonly columns: ProductTypeType["elements"];
  /** Columns that the database counts, in the order in which it writes them back. */
  readonly sequences: readonly { name: string; type: AlgebraicTypeType }[];
  readonly uniqueColumns: ReadonlySet<number>;
  readonly primaryKey: readonly number[];
  readonly fast: FastSys | undefined;
}

/** The functions of an index, which depend on its kind. */
export interface IndexAccessor {
  find?: AnyFunction;
  filter?: AnyFunction;
  delete: AnyFunction;
  update?: AnyFunction;
}

/** The definition of an index for its functions. */
export interface IndexInfo {
  readonly indexId: number;
  readonly columns: readonly number[];
  readonly algorithm: "BTree" | "Hash" | "Direct";
  readonly unique: boolean;
  readonly isPrimaryKey: boolean;
}
