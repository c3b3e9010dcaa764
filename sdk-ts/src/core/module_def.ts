import { BinaryWriter } from "./binary_writer";
import { primitiveTags } from "./primitives";
import type { AlgebraicTypeType, ProductTypeType, TypespaceType } from "./type_tree";

// The definition of a module, version 10 (spec 02 §4), as objects, and its bytes.

export type RawScopedTypeNameV10 = { scope: string[]; sourceName: string };
export type RawTypeDefV10 = { sourceName: RawScopedTypeNameV10; ty: number; customOrdering: boolean };
export type RawIndexAlgorithm =
  | { tag: "BTree"; value: number[] }
  | { tag: "Hash"; value: number[] }
  | { tag: "Direct"; value: number };
export type RawIndexDefV10 = {
  sourceName: string | undefined;
  accessorName: string | undefined;
  algorithm: RawIndexAlgorithm;
};
export type RawConstraintDefV10 = {
  sourceName: string | undefined;
  data: { tag: "Unique"; value: { columns: number[] } };
};
export type RawSequenceDefV10 = {
  sourceName: string | undefined;
  column: number;
  start: bigint | undefined;
  minValue: bigint | undefined;
  maxValue: bigint | undefined;
  increment: bigint;
};
export type RawColumnDefaultValueV10 = { colId: number; value: Uint8Array };
export type RawTableDefV10 = {
  sourceName: string;
  productTypeRef: number;
  primaryKey: number[];
  indexes: RawIndexDefV10[];
  constraints: RawConstraintDefV10[];
  sequences: RawSequenceDefV10[];
  tableType: { tag: "System" } | { tag: "User" };
  tableAccess: { tag: "Public" } | { tag: "Private" };
  defaultValues: RawColumnDefaultValueV10[];
  isEvent: boolean;
};
export type FunctionVisibility = { tag: "Private" } | { tag: "ClientCallable" };
export type RawReducerDefV10 = {
  sourceName: string;
  params: ProductTypeType;
  visibility: FunctionVisibility;
  okReturnType: AlgebraicTypeType;
  errReturnType: AlgebraicTypeType;
};
export type RawProcedureDefV10 = {
  sourceName: string;
  params: ProductTypeType;
  returnType: AlgebraicTypeType;
  visibility: FunctionVisibility;
};
export type RawViewDefV10 = {
  sourceName: string;
  index: number;
  isPublic: boolean;
  isAnonymous: boolean;
  params: ProductTypeType;
  returnType: AlgebraicTypeType;
};
export type RawScheduleDefV10 = {
  sourceName: string | undefined;
  tableName: string;
  scheduleAtCol: number;
  functionName: string;
};
export type Lifecycle = { tag: "Init" } | { tag: "OnConnect" } | { tag: "OnDisconnect" };
export type RawLifeCycleReducerDefV10 = { lifecycleSpec: Lifecycle; functionName: string };
export type RawRowLevelSecurityDefV9 = { sql: string };
export type NameMapping = { sourceName: string; canonicalName: string };
export type ExplicitNameEntry =
  | { tag: "Table"; value: NameMapping }
  | { tag: "Function"; value: NameMapping }
  | { tag: "Index"; value: NameMapping };
/** How names of a module become names in the database. */
export type CaseConversionPolicy = { tag: "None" } | { tag: "SnakeCase" };
export type HttpMethod =
  | { tag: "Get" }
  | { tag: "Head" }
  | { tag: "Post" }
  | { tag: "Put" }
  | { tag: "Delete" }
  | { tag: "Connect" }
  | { tag: "Options" }
  | { tag: "Trace" }
  | { tag: "Patch" }
  | { tag: "Extension"; value: string };
export type MethodOrAny = { tag: "Any" } | { tag: "Method"; value: HttpMethod };
export type RawHttpRouteDefV10 = { handlerFunction: string; method: MethodOrAny; path: string };
export type RawViewPrimaryKeyDefV10 = { viewSourceName: string; columns: string[] };
/** Which values a variable of the environment may have. */
export type EnvVarType =
  | { tag: "String" }
  | { tag: "StringLiteral"; value: string }
  | { tag: "Union"; value: string[] };
export type RawEnvironmentDeclarationV10 = { name: string; ty: EnvVarType; optional: boolean };
export type RawOutboxDefV10 = {
  tableName: string;
  remoteReducer: string;
  targetColumn: number;
  argColumns: number[];
  onResultReducer: string | undefined;
  signatureHash: Uint8Array;
};
export type RawSubmoduleV10 = { namespace: string; module: RawModuleDefV10 };

/** All sections of a definition. */
export type RawModuleDefV10 = {
  typespace: TypespaceType;
  types: RawTypeDefV10[];
  tables: RawTableDefV10[];
  reducers: RawReducerDefV10[];
  procedures: RawProcedureDefV10[];
  views: RawViewDefV10[];
  viewPrimaryKeys: RawViewPrimaryKeyDefV10[];
  schedules: RawScheduleDefV10[];
  lifeCycleReducers: RawLifeCycleReducerDefV10[];
  httpHandlers: { sourceName: string }[];
  httpRoutes: RawHttpRouteDefV10[];
  rowLevelSecurity: RawRowLevelSecurityDefV9[];
  explicitNames: { entries: ExplicitNameEntry[] };
  caseConversionPolicy: CaseConversionPolicy;
  submodules: RawSubmoduleV10[];
  /** Not sent if it is not there, so that hosts before 2.11 understand the definition. */
  environment?: RawEnvironmentDeclarationV10[];
  /** The same, for hosts before 2.12. */
  outboxes?: RawOutboxDefV10[];
};

/** How names of a module become names in the database. */
export const CaseConversionPolicy = {
  None: { tag: "None" } as const,
  SnakeCase: { tag: "SnakeCase" } as const,
};

export function emptyModuleDef(): RawModuleDefV10 {
  return {
    typespace: { types: [] },
    types: [],
    tables: [],
    reducers: [],
    procedures: [],
    views: [],
    viewPrimaryKeys: [],
    schedules: [],
    lifeCycleReducers: [],
    httpHandlers: [],
    httpRoutes: [],
    rowLevelSecurity: [],
    explicitNames: { entries: [] },
    caseConversionPolicy: CaseConversionPolicy.SnakeCase,
    submodules: [],
  };
}

/** The tags of the type constructors (spec 01 §1.1.1). */
const TYPE_TAGS = /* @__PURE__ */ ["Ref", "Sum", "Product", "Array"].concat(/* @__PURE__ */ primitiveTags());

const HTTP_METHODS = [
  "Get",
  "Head",
  "Post",
  "Put",
  "Delete",
  "Connect",
  "Options",
  "Trace",
  "Patch",
  "Extension",
] as const;

const VERSION_10 = 2;

/** Writes a definition; one method for each structure of spec 02 §4.1. */
class DefinitionWriter {
  readonly out = new BinaryWriter(1024);

  private list<T>(items: readonly T[], write: (item: T) => void): void {
    this.out.writeU32(items.length);
    for (const item of items) write(item);
  }

  private option<T>(value: T | undefined, write: (value: T) => void): void {
    this.out.writeU8(value === undefined ? 1 : 0);
    if (value !== undefined) write(value);
  }

  private string = (text: string) => this.out.writeString(text);
  private columns = (columns: readonly number[]) => this.list(columns, (column) => this.out.writeU16(column));

  private named(items: readonly { name: string | undefined; algebraicType: AlgebraicTypeType }[]): void {
    this.list(items, ({ name, algebraicType }) => {
      this.option(name, this.string);
      this.type(algebraicType);
    });
  }

  private type = (type: AlgebraicTypeType): void => {
    this.out.writeU8(TYPE_TAGS.indexOf(type.tag));
    if (type.tag === "Ref") this.out.writeU32(type.value);
    else if (type.tag === "Sum") this.named(type.value.variants);
    else if (type.tag === "Product") this.named(type.value.elements);
    else if (type.tag === "Array") this.type(type.value);
  };

  private typeDef = (def: RawTypeDefV10): void => {
    this.list(def.sourceName.scope, this.string);
    this.string(def.sourceName.sourceName);
    this.out.writeU32(def.ty);
    this.out.writeBool(def.customOrdering);
  };

  private index = (def: RawIndexDefV10): void => {
    this.option(def.sourceName, this.string);
    this.option(def.accessorName, this.string);
    if (def.algorithm.tag === "Direct") {
      this.out.writeU8(2);
      this.out.writeU16(def.algorithm.value);
    } else {
      this.out.writeU8(def.algorithm.tag === "BTree" ? 0 : 1);
      this.columns(def.algorithm.value);
    }
  };

  private constraint = (def: RawConstraintDefV10): void => {
    this.option(def.sourceName, this.string);
    this.out.writeU8(0);
    this.columns(def.data.value.columns);
  };

  private sequence = (def: RawSequenceDefV10): void => {
    const i128 = (value: bigint) => this.out.writeI128(value);
    this.option(def.sourceName, this.string);
    this.out.writeU16(def.column);
    this.option(def.start, i128);
    this.option(def.minValue, i128);
    this.option(def.maxValue, i128);
    i128(def.increment);
  };

  private table = (def: RawTableDefV10): void => {
    this.string(def.sourceName);
    this.out.writeU32(def.productTypeRef);
    this.columns(def.primaryKey);
    this.list(def.indexes, this.index);
    this.list(def.constraints, this.constraint);
    this.list(def.sequences, this.sequence);
    this.out.writeU8(def.tableType.tag === "System" ? 0 : 1);
    this.out.writeU8(def.tableAccess.tag === "Public" ? 0 : 1);
    this.list(def.defaultValues, ({ colId, value }) => {
      this.out.writeU16(colId);
      this.out.writeUInt8Array(value);
    });
    this.out.writeBool(def.isEvent);
  };

  private visibility(visibility: FunctionVisibility): void {
    this.out.writeU8(visibility.tag === "Private" ? 0 : 1);
  }

  private reducer = (def: RawReducerDefV10): void => {
    this.string(def.sourceName);
    this.named(def.params.elements);
    this.visibility(def.visibility);
    this.type(def.okReturnType);
    this.type(def.errReturnType);
  };

  private procedure = (def: RawProcedureDefV10): void => {
    this.string(def.sourceName);
    this.named(def.params.elements);
    this.type(def.returnType);
    this.visibility(def.visibility);
  };

  private view = (def: RawViewDefV10): void => {
    this.string(def.sourceName);
    this.out.writeU32(def.index);
    this.out.writeBool(def.isPublic);
    this.out.writeBool(def.isAnonymous);
    this.named(def.params.elements);
    this.type(def.returnType);
  };

  private schedule = (def: RawScheduleDefV10): void => {
    this.option(def.sourceName, this.string);
    this.string(def.tableName);
    this.out.writeU16(def.scheduleAtCol);
    this.string(def.functionName);
  };

  private explicitName = (entry: ExplicitNameEntry): void => {
    this.out.writeU8(["Table", "Function", "Index"].indexOf(entry.tag));
    this.string(entry.value.sourceName);
    this.string(entry.value.canonicalName);
  };

  private route = (def: RawHttpRouteDefV10): void => {
    this.string(def.handlerFunction);
    this.out.writeU8(def.method.tag === "Any" ? 0 : 1);
    if (def.method.tag === "Method") {
      const method = def.method.value;
      this.out.writeU8(HTTP_METHODS.indexOf(method.tag));
      if (method.tag === "Extension") this.string(method.value);
    }
    this.string(def.path);
  };

  environment = ({ name, ty, optional }: RawEnvironmentDeclarationV10): void => {
    this.string(name);
    this.out.writeU8(["String", "StringLiteral", "Union"].indexOf(ty.tag));
    if (ty.tag === "StringLiteral") this.string(ty.value);
    if (ty.tag === "Union") this.list(ty.value, this.string);
    this.out.writeBool(optional);
  };

  outbox = (def: RawOutboxDefV10): void => {
    this.string(def.tableName);
    this.string(def.remoteReducer);
    this.out.writeU16(def.targetColumn);
    this.columns(def.argColumns);
    this.option(def.onResultReducer, this.string);
    this.out.writeBytes(def.signatureHash);
  };

  /** What the hash of a reducer's signature is of, behind its first words (spec 02 §8.7a). */
  signature(params: ProductTypeType, typespace: TypespaceType): void {
    this.type({ tag: "Product", value: params });
    this.type({ tag: "Product", value: { elements: [] } });
    this.type({ tag: "String" });
    this.list(typespace.types, this.type);
  }

  /** All fifteen sections, also empty ones, and the environment and outboxes if there are any. */
  module(def: RawModuleDefV10): void {
    const sections: [tag: number, write: () => void][] = [
      [0, () => this.list(def.typespace.types, this.type)],
      [1, () => this.list(def.types, this.typeDef)],
      [2, () => this.list(def.tables, this.table)],
      [3, () => this.list(def.reducers, this.reducer)],
      [4, () => this.list(def.procedures, this.procedure)],
      [5, () => this.list(def.views, this.view)],
      [
        13,
        () =>
          this.list(def.viewPrimaryKeys, ({ viewSourceName, columns }) => {
            this.string(viewSourceName);
            this.list(columns, this.string);
          }),
      ],
      [6, () => this.list(def.schedules, this.schedule)],
      [
        7,
        () =>
          this.list(def.lifeCycleReducers, ({ lifecycleSpec, functionName }) => {
            this.out.writeU8(["Init", "OnConnect", "OnDisconnect"].indexOf(lifecycleSpec.tag));
            this.string(functionName);
          }),
      ],
      [11, () => this.list(def.httpHandlers, ({ sourceName }) => this.string(sourceName))],
      [12, () => this.list(def.httpRoutes, this.route)],
      [8, () => this.list(def.rowLevelSecurity, ({ sql }) => this.string(sql))],
      [10, () => this.list(def.explicitNames.entries, this.explicitName)],
      [9, () => this.out.writeU8(def.caseConversionPolicy.tag === "None" ? 0 : 1)],
      [
        14,
        () =>
          this.list(def.submodules, ({ namespace, module }) => {
            this.string(namespace);
            this.module(module);
          }),
      ],
    ];
    const { environment, outboxes } = def;
    if (environment) sections.push([15, () => this.list(environment, this.environment)]);
    if (outboxes) sections.push([16, () => this.list(outboxes, this.outbox)]);
    this.out.writeU32(sections.length);
    for (const [tag, write] of sections) {
      this.out.writeU8(tag);
      write();
    }
  }
}

/** The bytes that `__describe_module__` returns. */
export function encodeModuleDef(def: RawModuleDefV10): Uint8Array {
  const writer = new DefinitionWriter();
  writer.out.writeU8(VERSION_10);
  writer.module(def);
  return writer.out.getBuffer();
}

/** The bytes of a reducer's parameters, its results, and the typespace of its own that the parameters refer to. */
export function encodeSignature(params: ProductTypeType, typespace: TypespaceType): Uint8Array {
  const writer = new DefinitionWriter();
  writer.signature(params, typespace);
  return writer.out.getBuffer();
}
