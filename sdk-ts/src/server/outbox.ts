// Outbox tables: rows that call a reducer of another database.

import { badValue } from "../core/errors";
import { encodeSignature, type RawOutboxDefV10 } from "../core/module_def";
import { toCamelCase } from "../core/names";
import { DefinitionBuilder } from "../core/schema";
import type { OutboxOpts, RemoteReducer } from "../core/table";
import type { TableParts } from "../core/table_definition";
import { RowBuilder } from "../core/type_builders";
import type { RowObj } from "../core/type_inference";
import { keccak256 } from "./keccak";

/** What the hashed bytes of a signature begin with (spec 02 §8.7a). */
const DOMAIN = Array.from("spacetimedb:idc:reducer-signature:v1\0", (letter) => letter.charCodeAt(0));

/**
 * Names a reducer of the databases that an outbox table sends to. Its parameters, their names and their types must be those of the
 * other module: a message is refused if they are not.
 *
 * The package `spacetimedb` had no such function when this was written: its name and its form are a guess.
 *
 * ```ts
 * const receive = remoteReducer("receive", { number: t.u64(), text: t.string() });
 * const parcels = table(
 *   { outbox: { reducer: receive, target: "to", params: { text: "content" } } },
 *   { id: t.u64().primaryKey().autoInc(), to: t.identity(), content: t.string(), number: t.u64() },
 * );
 * const spacetimedb = schema({ parcels });
 * export const heard = spacetimedb.reducer(
 *   { onResult: parcels },
 *   { parcel: parcels.rowType, result: t.result(t.unit(), t.string()) },
 *   (ctx, { parcel, result }) => { … },
 * );
 * ```
 *
 * @param name Its name in the database, with its namespace if it has one: `child.receive`.
 * @param params Its parameters, under their names in the database.
 */
export function remoteReducer(name: string, params: RowObj = {}): RemoteReducer {
  const hashed = [...DOMAIN, ...signatureOf(params)];
  return { name, params, signatureHash: keccak256(new Uint8Array(hashed)) };
}

function signatureOf(params: RowObj): Uint8Array {
  // Types get their numbers in the order of their first use, as the signature has them.
  const types = new DefinitionBuilder();
  return encodeSignature(types.paramsType(new RowBuilder(params)), types.typespace);
}

/** The outbox of a table, without its callback, which is known later. */
export function outboxDefinition(
  { columns }: TableParts,
  { reducer, target, params }: OutboxOpts<string>,
  tableName: string,
): RawOutboxDefV10 {
  const position = (what: string, ...names: (string | undefined)[]): number => {
    const found = columns.findIndex(([name]) => names.includes(name));
    if (found < 0) throw badValue(`outbox table ${tableName} has no column for ${what}`);
    return found;
  };
  const argColumns = Object.entries(reducer.params).map(([param, type]) => {
    const what = `the parameter \`${param}\` of \`${reducer.name}\``;
    const named = params?.[param];
    const found = position(what, ...(named === undefined ? [param, toCamelCase(param)] : [named]));
    const [name, { typeBuilder }] = columns[found]!;
    if (String(signatureOf({ a: typeBuilder })) !== String(signatureOf({ a: type }))) {
      throw badValue(`column ${name} of outbox table ${tableName} has another type than ${what}`);
    }
    return found;
  });
  return {
    tableName,
    remoteReducer: reducer.name,
    targetColumn: position("its target", target),
    argColumns,
    onResultReducer: undefined,
    signatureHash: reducer.signatureHash,
  };
}
