import type { AlgebraicTypeType, ProductTypeType, TypespaceType } from "../core/type_tree";
import type { AnyFunction } from "../core/untyped";
import type { FastSys } from "./sys";

/** What the functions of a table need to know of it. */
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

/** What a module can do with an index; which functions there are depends on its kind. */
export interface IndexAccessor {
  find?: AnyFunction;
  filter?: AnyFunction;
  delete: AnyFunction;
  update?: AnyFunction;
}

/** What the functions of an index need to know of it. */
export interface IndexInfo {
  readonly indexId: number;
  readonly columns: readonly number[];
  readonly algorithm: "BTree" | "Hash" | "Direct";
  readonly unique: boolean;
  readonly isPrimaryKey: boolean;
}
