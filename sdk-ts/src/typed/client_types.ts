// From the types of a module's exports to those of its client. Nothing here runs.
//
// A client gets the names of columns, parameters, fields and variants as the database has them, and writes them as generated
// bindings do. So the compiler has to know what comes out. It cannot know the module's rule for names, and therefore takes only
// names that come back the same by either rule; what has another name cannot be used.

import type {
  AlgebraicType,
  AnyModule,
  AnySchema,
  AnyTableDef,
  CamelCase,
  ColumnBuilder,
  IndexDef,
  ScheduleAt,
  TypeBuilder,
} from "../client";
import type { Special } from "../core/special";

/** What `typeof import("…")` of a module gives, whatever it exports. */
export interface ModuleExports {
  default: { readonly schemaType: AnySchema };
}

/** Stands in place of a value whose name the client does not get back as the module wrote it, such as `userID`. */
export interface NameDoesNotComeBack<Name> {
  name: Name;
  reason: "write it as words, each with one capital letter at most and no small letter behind a digit, and without name()";
}

// Names ---------------------------------------------------------------------------------------------------------------

type Digit = "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9";
type KindOf<Letter extends string> = Letter extends Digit
  ? "digit"
  : Lowercase<Letter> extends Uppercase<Letter>
    ? "other"
    : Letter extends Lowercase<Letter>
      ? "small"
      : "capital";

/** Words are split between these letters in a way that cannot be undone. */
type Split = [before: "capital", letter: "capital"] | [before: "digit", letter: "small"] | [string, "other"];

type ComesBack<Name extends string, Before extends string = "start"> = string extends Name
  ? true
  : Name extends `${infer Letter}${infer Rest}`
    ? [Before, KindOf<Letter>] extends Split
      ? false
      : ComesBack<Rest, KindOf<Letter>>
    : true;

/** A value, if its name comes back. */
type Named<Name, Value> = Name extends string
  ? Name extends `_${string}` | `${string}_`
    ? NameDoesNotComeBack<Name>
    : ComesBack<CamelCase<Name>> extends true
      ? Value
      : NameDoesNotComeBack<Name>
  : Value;

type ClientName<Name> = Name extends string ? CamelCase<Name> : Name;

// Values --------------------------------------------------------------------------------------------------------------

type Leaf = string | number | bigint | boolean | undefined | null | Special | ScheduleAt | Uint8Array;

/** A value as clients have it: fields in camel case, variants with a capital. */
export type ClientValue<T> = T extends Leaf
  ? T
  : T extends readonly (infer Element)[]
    ? ClientValue<Element>[]
    : T extends { tag: infer Tag extends string }
      ? string extends Tag
        ? ClientFields<T>
        : ClientVariant<Tag, T>
      : ClientFields<T>;

type ClientVariant<Tag extends string, T> = T extends { value: infer Value }
  ? { tag: Named<Tag, Capitalize<CamelCase<Tag>>>; value: ClientValue<Value> }
  : { tag: Named<Tag, Capitalize<CamelCase<Tag>>> };

type ClientFields<T> = { [Name in keyof T as ClientName<Name>]: Named<Name, ClientValue<T[Name]>> };

// Tables and views ----------------------------------------------------------------------------------------------------

/** Columns of any copy of this package. */
type Column<Value, Type, Metadata> = {
  typeBuilder: { type: Value; algebraicType: Type };
  columnMetadata: Metadata;
};

/** With a name of its own a column must have one that leads to the same name again. */
type NamedColumn<Name, Metadata, Value> = Metadata extends { name: infer Own extends string }
  ? CamelCase<Own> extends ClientName<Name>
    ? Named<Name, Value>
    : NameDoesNotComeBack<Name>
  : Named<Name, Value>;

type ClientColumn<Name, C, IsView> = C extends Column<infer Value, infer Type, infer Metadata>
  ? ColumnBuilder<
      NamedColumn<Name, Metadata, ClientValue<Value>>,
      Type extends AlgebraicType ? Type : never,
      // Which keys and indexes views have depends on how they are made, so they have none here.
      IsView extends true ? object : Extract<Metadata, object>
    >
  : never;

type ClientColumns<Columns, IsView = false> = {
  [Name in keyof Columns & string as CamelCase<Name>]: ClientColumn<Name, Columns[Name], IsView>;
};

type ClientNames<Names> = { [At in keyof Names]: ClientName<Names[At]> };
type ClientIndex<Index> = {
  [Part in keyof Index]: Part extends "column"
    ? ClientName<Index[Part]>
    : Part extends "columns"
      ? ClientNames<Index[Part]>
      : Index[Part];
};

type ClientTable<Name, Columns, Indexes, Constraints = []> = {
  accessorName: Name;
  sourceName: string;
  rowType: AnyTableDef["rowType"];
  columns: Columns;
  constraints: Constraints;
  indexes: Indexes;
  resolvedIndexes: readonly IndexDef<any>[];
  tableDef: AnyTableDef["tableDef"];
};

type TableDefs<Tables, Prefix extends string> = {
  readonly [Name in keyof Tables & string as `${Prefix}${Name}`]: Tables[Name] extends {
    columns: infer Columns;
    indexes: infer Indexes extends readonly unknown[];
  }
    ? ClientTable<
        `${Prefix}${Name}`,
        ClientColumns<Columns>,
        { [At in keyof Indexes]: ClientIndex<Indexes[At]> }
      >
    : never;
};

/** The row in the result of a view. */
type RowOf<Result> = Result extends { element: infer Element }
  ? Element
  : Result extends { value: infer Value }
    ? Value
    : never;
type ColumnsOf<Row> = Row extends { row: infer Columns }
  ? Columns
  : Row extends { elements: infer Fields }
    ? { [Name in keyof Fields]: { typeBuilder: Fields[Name]; columnMetadata: object } }
    : {};

type ViewNames<Module> = {
  [Name in keyof Module]: "viewResult" extends keyof Module[Name] ? Name : never;
}[keyof Module];

type ViewDefs<Module, Prefix extends string> = {
  readonly [Name in ViewNames<Module> & string as `${Prefix}${Name}`]: Module[Name] extends {
    viewResult?: infer Result;
  }
    ? ClientTable<`${Prefix}${Name}`, ClientColumns<ColumnsOf<RowOf<Result>>, true>, []>
    : never;
};

// Functions -----------------------------------------------------------------------------------------------------------

/** The exports that are functions with such a context. */
type NamesWith<Module, Context> = {
  [Name in keyof Module]: Module[Name] extends (ctx: infer Ctx, ...args: any[]) => unknown
    ? Ctx extends Context
      ? Name
      : never
    : never;
}[Exclude<keyof Module, ViewNames<Module>>];

type ParamsOf<Fn> = Fn extends (ctx: any, args: infer Args) => unknown
  ? unknown extends Args
    ? {}
    : { [Name in keyof ClientValue<Args> & string]-?: TypeBuilder<ClientValue<Args>[Name], any> }
  : {};

type FunctionDef<Name, Fn> = {
  accessorName: Name;
  name: string;
  params: ParamsOf<Fn>;
  paramsType: any;
};

// A reducer's context knows how the caller was authenticated; a procedure's has transactions and, unlike that of a handler of
// HTTP requests, a connection.
type ReducerNames<Module> = NamesWith<Module, { senderAuth: unknown }> & string;
type ProcedureNames<Module> = NamesWith<Module, { withTx: unknown; connectionId: unknown }> & string;

type ReducerDefs<Module, Prefix extends string> = {
  [Name in ReducerNames<Module>]: FunctionDef<`${Prefix}${Name}`, Module[Name]>;
}[ReducerNames<Module>];
type ProcedureDefs<Module, Prefix extends string> = {
  [Name in ProcedureNames<Module>]: FunctionDef<`${Prefix}${Name}`, Module[Name]> & {
    returnType: TypeBuilder<
      Module[Name] extends (...args: any[]) => infer Result ? ClientValue<Result> : never,
      any
    >;
  };
}[ProcedureNames<Module>];

// Submodules ----------------------------------------------------------------------------------------------------------

/** The schemas of the submodules of a module, by their namespaces. */
type Submodules<Module extends ModuleExports> = Module["default"]["schemaType"] extends {
  namespaces: infer Schemas;
}
  ? Schemas
  : {};

/** What a submodule exports. */
type ExportsOf<Schema> = Schema extends { moduleExports?: infer Exports } ? Exports : never;

/** What all of these are. */
type Together<Members> = {
  [Name in keyof Members]: (member: Members[Name]) => void;
}[keyof Members] extends (member: infer All) => void
  ? All
  : never;

type AllTables<Module extends ModuleExports, Prefix extends string = ""> = TableDefs<
  Module["default"]["schemaType"]["tables"],
  Prefix
> &
  ViewDefs<Module, Prefix> &
  Together<{
    [Name in keyof Submodules<Module> & string]: ExportsOf<
      Submodules<Module>[Name]
    > extends infer Inner extends ModuleExports
      ? AllTables<Inner, `${Prefix}${Name}.`>
      : never;
  }>;
type AllReducers<Module extends ModuleExports, Prefix extends string = ""> =
  | ReducerDefs<Module, Prefix>
  | {
      [Name in keyof Submodules<Module> & string]: ExportsOf<
        Submodules<Module>[Name]
      > extends infer Inner extends ModuleExports
        ? AllReducers<Inner, `${Prefix}${Name}.`>
        : never;
    }[keyof Submodules<Module> & string];
type AllProcedures<Module extends ModuleExports, Prefix extends string = ""> =
  | ProcedureDefs<Module, Prefix>
  | {
      [Name in keyof Submodules<Module> & string]: ExportsOf<
        Submodules<Module>[Name]
      > extends infer Inner extends ModuleExports
        ? AllProcedures<Inner, `${Prefix}${Name}.`>
        : never;
    }[keyof Submodules<Module> & string];

/** What generated bindings would say of a module, from the types of its exports. */
export type ClientModule<Module extends ModuleExports> = Extract<
  {
    versionInfo: { cliVersion: string };
    tables: AllTables<Module>;
    reducers: readonly AllReducers<Module>[];
    procedures: readonly AllProcedures<Module>[];
  },
  AnyModule
>;
