import { BinaryWriter } from "./binary_writer";
import type { ColumnBuilder, ColumnMetadata } from "./column_builders";
import type { AllUnique, ConstraintOpts } from "./constraints";
import { badValue, LightconeError } from "./errors";
import type { ColumnIndex, IndexColumns, Indexes, IndexOpts, ReadonlyIndexes, UntypedIndex } from "./indexes";
import type { RawIndexDefV10, RawScheduleDefV10, RawTableDefV10 } from "./module_def";
import { toPascalCase } from "./names";
import { ScheduleAt } from "./schedule_at";
import type { ModuleContext } from "./schema";
import { RowBuilder } from "./type_builders";
import type { CoerceRow, InferTypeOfRow, RowObj } from "./type_inference";
import type { InvalidColumnMetadata, Prettify, ValidateColumnMetadata } from "./type_util";

type IsAnyRow<Row extends RowObj> = (<G>() => G extends Row ? 1 : 2) extends <G>() => G extends RowObj ? 1 : 2
  ? true
  : false;

type InvalidColumnNames<Row extends RowObj> = {
  [K in keyof Row]: Row[K] extends ColumnBuilder<any, any, infer M>
    ? ValidateColumnMetadata<M> extends InvalidColumnMetadata<any>
      ? K & string
      : never
    : never;
}[keyof Row];

type HasInvalidColumn<Row extends RowObj> = IsAnyRow<Row> extends true
  ? false
  : [InvalidColumnNames<Row>] extends [never]
    ? false
    : true;

/** The compiler shows this where a column is a key or counted, and has a default value. */
type ERROR_default_cannot_be_combined_with_primaryKey_unique_or_autoInc<InvalidColumns extends string> = {
  _invalidColumns: InvalidColumns;
  _fix: "Remove either default() or the constraint (primaryKey/unique/autoInc) from these columns";
};

/** The rows of a table. */
export type RowType<TableDef extends Pick<UntypedTableDef, "columns">> = InferTypeOfRow<TableDef["columns"]>;

export type { CoerceColumn, CoerceRow } from "./type_inference";

/** A table of a schema, whatever its columns. */
export type UntypedTableDef = {
  sourceName: string;
  accessorName: string;
  columns: Record<string, ColumnBuilder<any, any, ColumnMetadata<any>>>;
  rowType: RowBuilder<RowObj>["algebraicType"]["value"];
  /** The indexes as the options of the table give them. */
  indexes: readonly IndexOpts<any>[];
  /** All indexes, those of columns included. */
  resolvedIndexes: readonly UntypedIndex<any>[];
  constraints: readonly ConstraintOpts<any>[];
  tableDef: RawTableDefV10;
  isEvent?: boolean;
};

/** The indexes of a table by the name of their property. */
export type TableIndexes<TableDef extends UntypedTableDef> = {
  [K in keyof TableDef["columns"] & string as ColumnIndex<
    K,
    TableDef["columns"][K]["columnMetadata"]
  > extends never
    ? never
    : K]: ColumnIndex<K, TableDef["columns"][K]["columnMetadata"]>;
} & {
  [I in TableDef["indexes"][number] as I["accessor"] & {}]: TableIndexFromDef<TableDef, I>;
};

type TableIndexFromDef<
  TableDef extends UntypedTableDef,
  I extends IndexOpts<keyof TableDef["columns"] & string>,
> = IndexColumns<I> extends infer Cols extends ReadonlyArray<keyof TableDef["columns"] & string>
  ? {
      name: I["accessor"];
      unique: AllUnique<TableDef, Cols>;
      algorithm: Lowercase<I["algorithm"]>;
      columns: Cols;
    }
  : never;

/** A reducer or procedure that runs when a row of a table is due. */
export type ScheduledFunction = (ctx: any, args: any) => any;

export type TableOpts<Row extends RowObj> = {
  /** The name of the table in the database, if it is not its key in the schema. */
  name?: string;
  /** Whether clients may read the table; they may not, unless told otherwise. */
  public?: boolean;
  indexes?: IndexOpts<keyof Row & string>[];
  constraints?: ConstraintOpts<keyof Row & string>[];
  /** @deprecated Use the option `onSchedule` of a reducer or procedure. */
  scheduled?: () => ScheduledFunction;
  /** Rows of an event table are sent to subscribers, and not stored. */
  event?: boolean;
};

type OptsIndices<Opts extends TableOpts<any>> = Opts extends {
  indexes: infer Ixs extends NonNullable<any[]>;
}
  ? Ixs
  : [];

/** A table in the hands of a reducer. */
export type Table<TableDef extends UntypedTableDef> = Prettify<
  TableMethods<TableDef> & Indexes<TableDef, TableIndexes<TableDef>>
>;

/** A table in the hands of a view. */
export type ReadonlyTable<TableDef extends UntypedTableDef> = Prettify<
  ReadonlyTableMethods<TableDef> & ReadonlyIndexes<TableDef, TableIndexes<TableDef>>
>;

export interface ReadonlyTableMethods<TableDef extends UntypedTableDef> {
  /** How many rows there are; takes the same time however many. */
  count(): bigint;
  /** All rows, as the transaction sees them. */
  iter(): IteratorObject<Prettify<RowType<TableDef>>, undefined>;
  [Symbol.iterator](): IteratorObject<Prettify<RowType<TableDef>>, undefined>;
}

export interface TableMethods<TableDef extends UntypedTableDef> extends ReadonlyTableMethods<TableDef> {
  /**
   * Inserts a row, and returns it with its counted columns filled in.
   *
   * Throws `UniqueAlreadyExists` if a unique column has the value already, and `AutoIncOverflow` if a count ends.
   */
  insert(row: Prettify<RowType<TableDef>>): Prettify<RowType<TableDef>>;
  /** Deletes the row that is equal to `row`; says whether there was one. */
  delete(row: Prettify<RowType<TableDef>>): boolean;
  /** Deletes all rows; says how many. */
  clear(): bigint;
}

export type TableSchedule = { scheduleAtCol: number; reducer: () => ScheduledFunction };

/** What `table()` makes: goes into `schema()`. */
export type TableSchema<
  Row extends Record<string, ColumnBuilder<any, any, any>>,
  Idx extends readonly IndexOpts<keyof Row & string>[],
> = {
  readonly tableName?: string;
  /** The type of the rows, also to be used as a parameter. */
  readonly rowType: RowBuilder<Row>;
  readonly rowSpacetimeType: RowBuilder<Row>["algebraicType"]["value"];
  /** Registers the types of the table, and gives its definition. */
  tableDef(ctx: ModuleContext, accName: string): RawTableDefV10 & { schedule?: RawScheduleDefV10 };
  readonly idxs: Idx;
  readonly constraints: readonly { name: string | undefined; constraint: "unique"; columns: [any] }[];
  /** The position of the column of type `ScheduleAt`, if there is one. */
  readonly scheduleAtCol?: number;
  /** @deprecated Comes from the option `scheduled`. */
  readonly schedule?: TableSchedule;
  /** Whether rows are sent to subscribers, and not stored. */
  readonly isEvent?: boolean;
};

export type UntypedTableSchema = TableSchema<
  Record<string, ColumnBuilder<any, any, any>>,
  readonly IndexOpts<string>[]
>;

/** The tables whose rows can be the one argument of a scheduled function with these parameters. */
export type ScheduleTableForParams<Params extends Record<string, any>> =
  Params[keyof Params] extends RowBuilder<infer Row extends Record<string, ColumnBuilder<any, any, any>>>
    ? TableSchema<Row, readonly IndexOpts<keyof Row & string>[]>
    : never;

const ALGORITHMS = { btree: "BTree", hash: "Hash", direct: "Direct" } as const;

function indexDef(
  table: string,
  accessorName: string,
  algorithm: keyof typeof ALGORITHMS,
  columns: readonly string[],
  positions: ReadonlyMap<string, number>,
): RawIndexDefV10 {
  const ids = columns.map((column) => {
    const position = positions.get(column);
    if (position === undefined) {
      throw badValue(`index ${accessorName} of table ${table} names a column ${column} that does not exist`);
    }
    return position;
  });
  const tag = ALGORITHMS[algorithm];
  return {
    sourceName: `${table}_${columns.join("_")}_idx_${algorithm}`,
    accessorName,
    algorithm: tag === "Direct" ? { tag, value: ids[0]! } : { tag, value: ids },
  };
}

/**
 * Defines a table: its options, and its columns.
 *
 * If the compiler expects a third argument here, a column has `default()` and also `primaryKey()`, `unique()` or
 * `autoInc()`, which exclude each other.
 */
export function table<Row extends RowObj, const Opts extends TableOpts<Row>>(
  opts: Opts,
  row: Row | RowBuilder<Row>,
  ..._: HasInvalidColumn<Row> extends true
    ? [error: ERROR_default_cannot_be_combined_with_primaryKey_unique_or_autoInc<InvalidColumnNames<Row>>]
    : []
): TableSchema<CoerceRow<Row>, OptsIndices<Opts>> {
  const rowType: RowBuilder<any> = row instanceof RowBuilder ? row : new RowBuilder(row);
  const columns = Object.entries(rowType.row as Record<string, ColumnBuilder<any, any, ColumnMetadata>>);
  const positions = new Map(columns.map(([name], position) => [name, position]));
  const constraints = (opts.constraints ?? []).map(({ name, constraint, columns: over }) => ({
    name,
    constraint,
    columns: over as [any],
  }));
  const scheduleAtCol = columns.findIndex(([, column]) =>
    ScheduleAt.isScheduleAt(column.typeBuilder.algebraicType),
  );
  if (opts.scheduled !== undefined && scheduleAtCol < 0) {
    throw new LightconeError("LC0805", "A scheduled table needs a column of type t.scheduleAt()");
  }

  const tableDef = (ctx: ModuleContext, accName: string): RawTableDefV10 => {
    rowType.typeName ??= toPascalCase(opts.name ?? accName);
    const def: RawTableDefV10 = {
      sourceName: accName,
      productTypeRef: ctx.registerTypesRecursively(rowType).ref,
      primaryKey: [],
      indexes: [],
      constraints: [],
      sequences: [],
      tableType: { tag: "User" },
      tableAccess: { tag: opts.public ? "Public" : "Private" },
      defaultValues: [],
      isEvent: opts.event ?? false,
    };
    columns.forEach(([name, column], colId) => {
      const { isPrimaryKey, isUnique, isAutoIncrement, indexType } = column.columnMetadata;
      const unique = isPrimaryKey || isUnique;
      if (isPrimaryKey) def.primaryKey.push(colId);
      if (indexType || unique) {
        def.indexes.push(indexDef(accName, name, indexType ?? "btree", [name], positions));
      }
      if (unique) {
        def.constraints.push({ sourceName: undefined, data: { tag: "Unique", value: { columns: [colId] } } });
      }
      if (isAutoIncrement) {
        def.sequences.push({
          sourceName: undefined,
          start: undefined,
          minValue: undefined,
          maxValue: undefined,
          column: colId,
          increment: 1n,
        });
      }
      if (Object.hasOwn(column.columnMetadata, "defaultValue")) {
        const writer = new BinaryWriter(16);
        column.serialize(writer, column.columnMetadata.defaultValue);
        def.defaultValues.push({ colId, value: writer.getBuffer() });
      }
    });
    for (const index of opts.indexes ?? []) {
      const over = index.algorithm === "direct" ? [index.column] : index.columns;
      const made = indexDef(accName, index.accessor, index.algorithm, over, positions);
      def.indexes.push(made);
      if (index.name !== undefined) {
        ctx.addExplicitName("Index", made.sourceName!, index.name);
      }
    }
    for (const { name, columns: over } of constraints) {
      const ids = over.map((column) => {
        const position = positions.get(column);
        if (position === undefined) {
          throw badValue(`a constraint of table ${accName} names a column ${column} that does not exist`);
        }
        return position;
      });
      def.constraints.push({ sourceName: name, data: { tag: "Unique", value: { columns: ids } } });
    }
    if (opts.name !== undefined) ctx.addExplicitName("Table", accName, opts.name);
    return def;
  };

  const made: UntypedTableSchema = {
    tableName: opts.name,
    rowType,
    rowSpacetimeType: rowType.algebraicType.value as any,
    tableDef,
    idxs: (opts.indexes ?? []) as any,
    constraints,
    scheduleAtCol: scheduleAtCol < 0 ? undefined : scheduleAtCol,
    schedule: opts.scheduled && { scheduleAtCol, reducer: opts.scheduled },
    isEvent: opts.event,
  };
  return made as unknown as TableSchema<CoerceRow<Row>, OptsIndices<Opts>>;
}
