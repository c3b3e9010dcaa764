import { canGenerateCode, deserializerOf, serializerOf } from "../core/codec";
import { badValue } from "../core/errors";
import type { RawIndexDefV10, RawTableDefV10 } from "../core/module_def";
import { Range } from "../core/range";
import { resolve } from "../core/shapes";
import type { TypespaceType } from "../core/type_tree";
import type { AnyRow } from "../core/untyped";
import { fixedSize } from "./fixed_layout";
import { makeFixedIndex, makeFixedTable } from "./fixed_table";
import { advance, readScratch, scan, scratch } from "./rows";
import { fastSys, sys } from "./sys";
import type { IndexAccessor, IndexInfo, TableInfo } from "./table_info";

/** Rows larger than this do not go through the generated code. */
const MAX_FIXED_ROW_BYTES = 1024;

/** The table under a name, as reducers see it; asks the host for the ids of the table and its indexes. */
export function makeTableView(typespace: TypespaceType, def: RawTableDefV10, namePrefix = ""): object {
  const tableId = sys.table_id_from_name(namePrefix + def.sourceName);
  const row = resolve(def.productTypeRef, typespace);
  if (row.tag !== "Product") throw badValue(`the rows of table ${def.sourceName} are not a product`);
  const columns = row.value.elements;
  const table: TableInfo = {
    tableId,
    typespace,
    row,
    columns,
    sequences: def.sequences
      .map(({ column }) => column)
      .sort((a, b) => a - b)
      .map((column) => ({ name: columns[column]!.name!, type: columns[column]!.algebraicType })),
    uniqueColumns: new Set(
      def.constraints.filter((c) => c.data.value.columns.length === 1).map((c) => c.data.value.columns[0]!),
    ),
    primaryKey: def.primaryKey,
    fast: fastSys(),
  };
  const size = fixedSize(row, typespace);
  const fixed = size !== undefined && size > 0 && size <= MAX_FIXED_ROW_BYTES && canGenerateCode();

  const view: Record<string, unknown> = { ...(fixed ? makeFixedTable(table) : makeTable(table)) };
  Object.assign(view, makeScans(table));
  for (const indexDef of def.indexes) {
    const index = indexInfo(indexDef, table, namePrefix);
    const accessor = fixed && index.unique ? makeFixedIndex(table, index) : makeIndex(table, index);
    if (index.unique && index.algorithm !== "Hash") {
      accessor.filter = makeRangedIndex(table, index, keyWriter(table, index)).filter;
    }
    view[indexDef.accessorName!] = Object.freeze(accessor);
  }
  return Object.freeze(view);
}

function indexInfo(def: RawIndexDefV10, table: TableInfo, namePrefix: string): IndexInfo {
  const columns = def.algorithm.tag === "Direct" ? [def.algorithm.value] : def.algorithm.value;
  return {
    indexId: sys.index_id_from_name(namePrefix + def.sourceName!),
    columns,
    algorithm: def.algorithm.tag,
    unique: columns.every((column) => table.uniqueColumns.has(column)),
    isPrimaryKey: columns.every((column) => table.primaryKey.includes(column)),
  };
}

/** The functions that are the same for all tables. */
function makeScans({ tableId, row, typespace }: TableInfo): object {
  const read = deserializerOf(row, typespace);
  const iter = () => scan(sys.datastore_table_scan_bsatn(tableId), read);
  const write = serializerOf(row, typespace);
  return {
    count: () => sys.datastore_table_row_count(tableId),
    iter,
    [Symbol.iterator]: iter,
    clear: () => sys.datastore_clear(tableId),
    delete(value: unknown): boolean {
      scratch.clear();
      scratch.writeU32(1);
      write(scratch, value);
      return sys.datastore_delete_all_by_eq_bsatn(tableId, scratch.buffer.buffer, scratch.offset) > 0;
    },
  };
}

/** A function that puts the values that the database counted into a row that had zero there. */
function fillSequences({ sequences, typespace }: TableInfo): (row: AnyRow) => void {
  const columns = sequences.map(({ name, type }) => ({ name, read: deserializerOf(type, typespace) }));
  return (row) => {
    const reader = readScratch();
    for (const { name, read } of columns) {
      // biome-ignore lint/suspicious/noDoubleEquals: 0 and 0n alike
      if (row[name] == 0) row[name] = read(reader);
    }
  };
}

function makeTable(table: TableInfo): object {
  const { tableId } = table;
  const write = serializerOf(table.row, table.typespace);
  const fill = fillSequences(table);
  return {
    insert(row: AnyRow) {
      scratch.clear();
      write(scratch, row);
      sys.datastore_insert_bsatn(tableId, scratch.buffer.buffer, scratch.offset);
      const inserted = { ...row };
      fill(inserted);
      return inserted;
    },
  };
}

/** A function that writes the first columns of an index. */
type WriteKey = (values: readonly unknown[], count: number) => void;

function keyWriter({ columns, typespace }: TableInfo, index: IndexInfo): WriteKey {
  const writers = index.columns.map((column) => serializerOf(columns[column]!.algebraicType, typespace));
  return (values, count) => {
    for (let i = 0; i < count; i++) writers[i]!(scratch, values[i]);
  };
}

function makeIndex(table: TableInfo, index: IndexInfo): IndexAccessor {
  const writeKey = keyWriter(table, index);
  if (index.unique) return makeUniqueIndex(table, index, writeKey);
  return index.algorithm === "Hash"
    ? makePointIndex(table, index, writeKey)
    : makeRangedIndex(table, index, writeKey);
}

/** The values of a key: one stands for itself if the index has one column. */
function keyOf(index: IndexInfo): (value: unknown) => readonly unknown[] {
  return index.columns.length === 1
    ? (value) => [value]
    : (value) => (Array.isArray(value) ? value : [value]);
}

function makeUniqueIndex(table: TableInfo, index: IndexInfo, writeKey: WriteKey): IndexAccessor {
  const { indexId } = index;
  const { tableId, fast } = table;
  const read = deserializerOf(table.row, table.typespace);
  const write = serializerOf(table.row, table.typespace);
  const fill = fillSequences(table);
  const width = index.columns.length;
  const key = keyOf(index);
  const update = fast?.row_update ?? sys.datastore_update_bsatn;

  const point = (value: unknown) => {
    scratch.clear();
    writeKey(key(value), width);
    return scratch.offset;
  };

  const pointRead = fast?.point_read;
  const found: (length: number) => boolean = pointRead
    ? (length) => {
        const filled = pointRead(indexId, scratch.buffer.buffer, length);
        if (filled >= 0) return filled > 0;
        // The key is still there, and grows along.
        scratch.buffer.grow(-filled);
        return pointRead(indexId, scratch.buffer.buffer, length) > 0;
      }
    : (length) => {
        const iterator = sys.datastore_index_scan_point_bsatn(indexId, scratch.buffer.buffer, length);
        const filled = advance(iterator, scratch.buffer);
        if (filled > 0) sys.row_iter_bsatn_close(iterator);
        return filled !== 0;
      };

  const accessor = {
    find: (value: unknown) => (found(point(value)) ? read(readScratch()) : null),
    delete: (value: unknown) => {
      const length = point(value);
      return sys.datastore_delete_by_index_scan_point_bsatn(indexId, scratch.buffer.buffer, length) > 0;
    },
  };
  if (!index.isPrimaryKey) return accessor;
  return {
    ...accessor,
    update: (row: AnyRow) => {
      scratch.clear();
      write(scratch, row);
      update(tableId, indexId, scratch.buffer.buffer, scratch.offset);
      fill(row);
      return row;
    },
  };
}

function makePointIndex(table: TableInfo, index: IndexInfo, writeKey: WriteKey): IndexAccessor {
  const { indexId } = index;
  const read = deserializerOf(table.row, table.typespace);
  const width = index.columns.length;
  const key = keyOf(index);
  const point = (value: unknown) => {
    scratch.clear();
    writeKey(key(value), width);
    return scratch.offset;
  };
  return {
    filter(value: unknown) {
      const length = point(value);
      return scan(sys.datastore_index_scan_point_bsatn(indexId, scratch.buffer.buffer, length), read);
    },
    delete(value: unknown): number {
      const length = point(value);
      return sys.datastore_delete_by_index_scan_point_bsatn(indexId, scratch.buffer.buffer, length);
    },
  };
}

const BOUND_TAGS = { included: 0, excluded: 1, unbounded: 2 } as const;

function makeRangedIndex(table: TableInfo, index: IndexInfo, writeKey: WriteKey): IndexAccessor {
  const { indexId } = index;
  const read = deserializerOf(table.row, table.typespace);
  const writers = index.columns.map((column) =>
    serializerOf(table.columns[column]!.algebraicType, table.typespace),
  );
  const width = index.columns.length;
  const key = keyOf(index);

  const writeBound = (column: number, bound: Range<unknown>["from"]): number => {
    const start = scratch.offset;
    scratch.writeU8(BOUND_TAGS[bound.tag]);
    if (bound.tag !== "unbounded") writers[column]!(scratch, bound.value);
    return scratch.offset - start;
  };

  /** Calls the point function for a whole key, and the range function for anything else. */
  const look = (
    value: unknown,
    byPoint: (index: number, buffer: ArrayBuffer, length: number) => number,
    byRange: typeof sys.datastore_index_scan_range_bsatn,
  ): number => {
    const values = key(value);
    const last = values.length - 1;
    if (last < 0 || last >= width) {
      throw badValue(`an index over ${width} column(s) was given ${values.length} value(s)`);
    }
    const end = values[last];
    scratch.clear();
    if (!(end instanceof Range)) {
      if (values.length === width) {
        writeKey(values, width);
        return byPoint(indexId, scratch.buffer.buffer, scratch.offset);
      }
      writeKey(values, last);
      const prefixLength = scratch.offset;
      const length = writeBound(last, { tag: "included", value: end });
      // An end of length 0 stands for the start: all rows with exactly this value.
      return byRange(indexId, scratch.buffer.buffer, prefixLength, last, length, 0);
    }
    writeKey(values, last);
    const prefixLength = scratch.offset;
    const startLength = writeBound(last, end.from);
    const endLength = writeBound(last, end.to);
    return byRange(indexId, scratch.buffer.buffer, prefixLength, last, startLength, endLength);
  };

  return {
    filter: (value: unknown) =>
      scan(look(value, sys.datastore_index_scan_point_bsatn, sys.datastore_index_scan_range_bsatn), read),
    delete: (value: unknown): number =>
      look(
        value,
        sys.datastore_delete_by_index_scan_point_bsatn,
        sys.datastore_delete_by_index_scan_range_bsatn,
      ),
  };
}
