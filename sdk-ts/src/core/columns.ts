// The metadata of columns, for the types of tables and queries.

/** The metadata of a column. */
export type MetadataOf<Column> = Column extends { columnMetadata: infer Metadata } ? Metadata : unknown;

/** The names of the columns whose definitions say this. */
export type ColumnsThatSay<Columns, Wanted> = {
  [Name in keyof Columns & string]: MetadataOf<Columns[Name]> extends Wanted ? Name : never;
}[keyof Columns & string];

type Key = { isPrimaryKey: true };
type Unique = Key | { isUnique: true };

/** The columns that make up a primary key; usually one. */
export type KeyColumns<Columns> = ColumnsThatSay<Columns, Key>;

/** The columns in which no value comes twice. */
export type UniqueColumns<Columns> = ColumnsThatSay<Columns, Unique>;

/** The columns with an index of their own, which unique ones have too. */
export type ColumnsWithIndex<Columns> = ColumnsThatSay<
  Columns,
  Unique | { indexType: "btree" | "direct" | "hash" }
>;

/** Columns with a default value that must not have one. Of columns that are not known by name, nothing is known. */
export type ColumnsWithUselessDefault<Columns> = string extends keyof Columns
  ? never
  : ColumnsThatSay<Columns, { defaultValue: any } & (Unique | { isAutoIncrement: true })>;

/** Whether there are such columns. */
export type HasUselessDefault<Columns> = [ColumnsWithUselessDefault<Columns>] extends [never] ? false : true;
