import type { AlgebraicTypeType } from "../core/type_tree";
import { bufferNames, FixedLayout, fixedSize } from "./fixed_layout";
import { sys } from "./sys";
import type { IndexAccessor, IndexInfo, TableInfo } from "./table_info";

// The functions of tables whose rows all have the same size. There is one buffer for all of them; it is never replaced, so
// the code refers to it and its view directly.

const BUFFER_SIZE_BYTES = 2048;
let bufferAndViews: Record<string, unknown> | undefined;

function names(): Record<string, unknown> {
  bufferAndViews ??= bufferNames(new ArrayBuffer(BUFFER_SIZE_BYTES));
  return bufferAndViews;
}

const isBigInt = (type: AlgebraicTypeType) => /^[IU](64|128|256)$/.test(type.tag);

/** Statements that put the counted values, one after the other from the start of the buffer, into a row that had zero. */
function fillSequences(table: TableInfo, layout: FixedLayout): string {
  if (table.sequences.length === 1) {
    const { name, type } = table.sequences[0]!;
    const member = `r[${JSON.stringify(name)}]`;
    return `if(${member}===${isBigInt(type) ? "0n" : "0"})${member}=${layout.read(type, 0)};`;
  }
  // Where a value stands depends on which of the columns before it were zero: tried from the last to the first.
  const fill = (from: number, at: number): string => {
    if (from === table.sequences.length) return "";
    const { name, type } = table.sequences[from]!;
    const member = `r[${JSON.stringify(name)}]`;
    const size = fixedSize(type, table.typespace)!;
    return `if(${member}===${isBigInt(type) ? "0n" : "0"}){${member}=${layout.read(type, at)};${fill(from + 1, at + size)}}else{${fill(from + 1, at)}}`;
  };
  return fill(0, 0);
}

/** `insert` of a table. */
export function makeFixedTable(table: TableInfo): object {
  const layout = new FixedLayout(table.typespace);
  const size = fixedSize(table.row, table.typespace)!;
  const fields = table.columns.map(({ name }) => `[${JSON.stringify(name)}]:x[${JSON.stringify(name)}]`);
  const insert = FixedLayout.function(
    `function(x){${layout.write(table.row, "x", 0)}insert(${table.tableId},B,${size});const r={${fields.join(",")}};${fillSequences(table, layout)}return r}`,
    { ...names(), insert: sys.datastore_insert_bsatn },
  );
  return { insert };
}

/** A unique index: `find`, `delete`, and `update` if it is over the primary key. */
export function makeFixedIndex(table: TableInfo, index: IndexInfo): IndexAccessor {
  const layout = new FixedLayout(table.typespace);
  const { indexId } = index;
  let at = 0;
  const writeKey = index.columns
    .map((column, position) => {
      const type = table.columns[column]!.algebraicType;
      const text = layout.write(type, index.columns.length === 1 ? "k" : `k[${position}]`, at);
      at += fixedSize(type, table.typespace)!;
      return text;
    })
    .join("");
  const size = fixedSize(table.row, table.typespace)!;
  const row = layout.read(table.row, 0);
  const { fast } = table;
  const outside = {
    ...names(),
    pointRead: fast?.point_read,
    scanPoint: sys.datastore_index_scan_point_bsatn,
    advance: sys.row_iter_bsatn_advance,
    close: sys.row_iter_bsatn_close,
    deletePoint: sys.datastore_delete_by_index_scan_point_bsatn,
    update: fast?.row_update ?? sys.datastore_update_bsatn,
  };
  const find =
    fast?.point_read === undefined
      ? `function(k){${writeKey}const i=scanPoint(${indexId},B,${at}),n=advance(i,B);if(n===0)return null;if(n>0)close(i);return ${row}}`
      : `function(k){${writeKey}return pointRead(${indexId},B,${at})===0?null:${row}}`;
  const accessor = {
    find: FixedLayout.function(find, outside),
    delete: FixedLayout.function(`function(k){${writeKey}return deletePoint(${indexId},B,${at})>0}`, outside),
  };
  if (!index.isPrimaryKey) return accessor;
  return {
    ...accessor,
    update: FixedLayout.function(
      `function(r){${layout.write(table.row, "r", 0)}update(${table.tableId},${indexId},B,${size});${fillSequences(table, layout)}return r}`,
      outside,
    ),
  };
}
