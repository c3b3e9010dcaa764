import { closureDeserializer, closureSerializer } from "./closures";
import { generateDeserializer } from "./codegen";
import type { AlgebraicTypeType, TypespaceType } from "./type_tree";
import type { AnyDeserializer, AnySerializer } from "./untyped";

let canGenerate: boolean | undefined;

/** Whether functions can be made from text here: pages with a strict content security policy forbid it. */
export function canGenerateCode(): boolean {
  if (canGenerate === undefined) {
    try {
      canGenerate = new Function("return 1")() === 1;
    } catch {
      canGenerate = false;
    }
  }
  return canGenerate;
}

type MakeSerializer = (type: AlgebraicTypeType, typespace: TypespaceType | undefined) => AnySerializer;
let generateSerializer: MakeSerializer | undefined;

/** For modules, which write rows all the time: makes serializers from text, where that can be done. */
export function preferGenerated(make: MakeSerializer): void {
  generateSerializer = make;
}

/** For tests: use generated code, or closures, or (undefined) find out again. */
export function setCodeGeneration(allowed: boolean | undefined): void {
  canGenerate = allowed;
  serializers = [new WeakMap(), new WeakMap()];
  deserializers = new WeakMap();
}

type Cache<F> = WeakMap<object, { typespace: TypespaceType | undefined; made: F }>;
/** Those that do not check, and those that do. */
let serializers: [Cache<AnySerializer>, Cache<AnySerializer>] = [
  /* @__PURE__ */ new WeakMap(),
  /* @__PURE__ */ new WeakMap(),
];
let deserializers: Cache<AnyDeserializer> = /* @__PURE__ */ new WeakMap();

/**
 * The function that writes values of `type`, made on first use. With `isChecked` it throws for a value that does not fit;
 * otherwise what is written for such a value is undefined.
 */
export function serializerOf(
  type: AlgebraicTypeType,
  typespace?: TypespaceType,
  isChecked = false,
): AnySerializer {
  const cache = serializers[isChecked ? 1 : 0];
  const known = cache.get(type);
  if (known !== undefined && known.typespace === typespace) return known.made;
  const made =
    generateSerializer && !isChecked && canGenerateCode()
      ? generateSerializer(type, typespace)
      : closureSerializer(type, typespace, isChecked, serializerOf);
  cache.set(type, { typespace, made });
  return made;
}

/** The function that reads values of `type`, made on first use. */
export function deserializerOf(type: AlgebraicTypeType, typespace?: TypespaceType): AnyDeserializer {
  const known = deserializers.get(type);
  if (known !== undefined && known.typespace === typespace) return known.made;
  const made = canGenerateCode()
    ? generateDeserializer(type, typespace, deserializerOf)
    : closureDeserializer(type, typespace, deserializerOf);
  deserializers.set(type, { typespace, made });
  return made;
}
