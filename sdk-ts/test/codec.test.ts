import * as fc from "fast-check";
import * as npm from "spacetimedb";
import { afterAll, describe, expect, it } from "vitest";
import * as ours from "../src/core";
import { Misfit } from "../src/core/checks";
import { preferGenerated, serializerOf, setCodeGeneration } from "../src/core/codec";
import { generateSerializer } from "../src/core/codegen_write";

const { AlgebraicType: A } = ours;

const PRIMITIVES = [
  "U8",
  "I8",
  "U16",
  "I16",
  "U32",
  "I32",
  "U64",
  "I64",
  "U128",
  "I128",
  "U256",
  "I256",
] as const;

type Case = { type: ours.AlgebraicType; value: fc.Arbitrary<any> };

const unit = A.Product({ elements: [] });
const name = fc.stringMatching(/^[a-z][a-z_]{0,5}$/);

function leaf(): fc.Arbitrary<Case> {
  const integers = PRIMITIVES.map((tag): Case => {
    const bits = Number(tag.slice(1));
    const [min, max] = tag.startsWith("U")
      ? [0n, (1n << BigInt(bits)) - 1n]
      : [-(1n << BigInt(bits - 1)), (1n << BigInt(bits - 1)) - 1n];
    const value: fc.Arbitrary<any> =
      bits <= 32 ? fc.integer({ min: Number(min), max: Number(max) }) : fc.bigInt({ min, max });
    return { type: { tag }, value };
  });
  const special = (type: ours.AlgebraicType, max: bigint, min: bigint, make: (n: bigint) => any): Case => ({
    type,
    value: fc.bigInt({ min, max }).map(make),
  });
  const i64 = [(1n << 63n) - 1n, -(1n << 63n)] as const;
  return fc.constantFrom<Case>(
    ...integers,
    { type: A.Bool, value: fc.boolean() },
    { type: A.F64, value: fc.double() },
    { type: A.F32, value: fc.float() },
    { type: A.String, value: fc.string({ unit: "grapheme", maxLength: 80 }) },
    { type: A.String, value: fc.string({ unit: "grapheme-ascii", maxLength: 80 }) },
    { type: A.Array(A.U8), value: fc.uint8Array({ maxLength: 50 }) },
    { type: unit, value: fc.constant({}) },
    special(ours.Identity.getAlgebraicType(), (1n << 256n) - 1n, 0n, (n) => new ours.Identity(n)),
    special(ours.ConnectionId.getAlgebraicType(), (1n << 128n) - 1n, 0n, (n) => new ours.ConnectionId(n)),
    special(ours.Uuid.getAlgebraicType(), (1n << 128n) - 1n, 0n, (n) => new ours.Uuid(n)),
    special(ours.Timestamp.getAlgebraicType(), ...i64, (n) => new ours.Timestamp(n)),
    special(ours.TimeDuration.getAlgebraicType(), ...i64, (n) => new ours.TimeDuration(n)),
    special(ours.ScheduleAt.getAlgebraicType(), ...i64, (n) => ours.ScheduleAt.interval(n)),
    special(ours.ScheduleAt.getAlgebraicType(), ...i64, (n) => ours.ScheduleAt.time(n)),
  );
}

const { any: anyCase } = fc.letrec<{ any: Case }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    leaf(),
    tie("any").map(({ type, value }) => ({
      type: ours.Option.getAlgebraicType(type) as ours.AlgebraicType,
      value: fc.option(value, { nil: undefined }),
    })),
    tie("any").map((inner) => {
      const type = A.Array(inner.type);
      return inner.type.tag === "U8"
        ? { type, value: fc.uint8Array({ maxLength: 5 }) }
        : { type, value: fc.array(inner.value, { maxLength: 5 }) };
    }),
    fc.uniqueArray(fc.tuple(name, tie("any")), { maxLength: 6, selector: ([n]) => n }).map((fields) => ({
      type: A.Product({ elements: fields.map(([n, c]) => ({ name: n, algebraicType: c.type })) }),
      value: fc.record(Object.fromEntries(fields.map(([n, c]) => [n, c.value]))),
    })),
    fc
      .uniqueArray(fc.tuple(name, tie("any")), { minLength: 1, maxLength: 5, selector: ([n]) => n })
      .filter((v) => !(v.length === 2 && ["some", "ok"].includes(v[0]![0])))
      .map((variants) => ({
        type: A.Sum({ variants: variants.map(([n, c]) => ({ name: n, algebraicType: c.type })) }),
        value: fc.oneof(...variants.map(([n, c]) => fc.record({ tag: fc.constant(n), value: c.value }))),
      })),
    // The published package writes `err` with the type of `ok`: only equal types can be compared.
    tie("any").map(({ type, value }) => ({
      type: ours.Result.getAlgebraicType(type, type) as ours.AlgebraicType,
      value: fc.oneof(fc.record({ ok: value }), fc.record({ err: value })),
    })),
  ),
}));

const anyTypeAndValue = anyCase.chain(({ type, value }) => fc.tuple(fc.constant(type), value));

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

function encode(sdk: typeof ours | typeof npm, type: any, value: any): Uint8Array {
  const writer = new sdk.BinaryWriter(1);
  sdk.AlgebraicType.makeSerializer(type)(writer as any, value);
  return writer.getBuffer();
}

/** Strips classes, so that values of the two packages compare. */
function plain(value: any): any {
  if (value instanceof Uint8Array) return hex(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
  }
  return value;
}

/** A copy of a value in which one part, chosen by a number, is another. */
function replacePart(value: any, at: number, other: unknown): any {
  if (Array.isArray(value) && value.length > 0) {
    return value.map((part, i) => (i === at % value.length ? replacePart(part, at >> 1, other) : part));
  }
  const keys =
    value !== null && typeof value === "object" && !ArrayBuffer.isView(value) ? Object.keys(value) : [];
  if (keys.length === 0 || at % 7 === 0) return other;
  const key = keys[at % keys.length]!;
  return { ...value, [key]: replacePart(value[key], at >> 1, other) };
}

preferGenerated(generateSerializer);
afterAll(() => setCodeGeneration(undefined));

describe.each([
  ["generated code", true],
  ["closures", false],
])("codec with %s", (_, generates) => {
  it("agrees with the published package on every type", () => {
    setCodeGeneration(generates);
    fc.assert(
      fc.property(anyTypeAndValue, ([type, value]) => {
        const bytes = encode(ours, type, value);
        expect(hex(bytes)).toBe(hex(encode(npm, type, value)));
        const reader = new ours.BinaryReader(bytes);
        const read = ours.AlgebraicType.makeDeserializer(type)(reader);
        expect(reader.remaining).toBe(0);
        expect(hex(encode(ours, type, read))).toBe(hex(bytes));
        const theirs = npm.AlgebraicType.makeDeserializer(type as any)(new npm.BinaryReader(bytes));
        expect(plain(read)).toEqual(plain(theirs));
      }),
      { numRuns: 1500 },
    );
  });

  it("with checks writes the same, and refuses what does not fit, wherever it is", () => {
    setCodeGeneration(generates);
    const writeChecked = (type: ours.AlgebraicType, value: unknown): string => {
      const writer = new ours.BinaryWriter(1);
      serializerOf(type, undefined, true)(writer, value);
      return hex(writer.getBuffer());
    };
    fc.assert(
      fc.property(anyTypeAndValue, ([type, value]) => {
        expect(writeChecked(type, value)).toBe(hex(encode(ours, type, value)));
      }),
      { numRuns: 1000 },
    );
    // A value of another type fits, and is written as without checks, or is told apart.
    let refused = 0;
    const anything = fc.oneof(
      fc.anything(),
      anyTypeAndValue.map(([, value]) => value),
    );
    fc.assert(
      fc.property(anyTypeAndValue, anything, fc.nat(), ([type, good], bad, at) => {
        const value = replacePart(good, at, bad);
        try {
          expect(writeChecked(type, value)).toBe(hex(encode(ours, type, value)));
        } catch (error) {
          expect(error).toBeInstanceOf(Misfit);
          expect((error as Misfit).message).toMatch(
            /^(the arguments|argument [^ ]+).*: expected .+, got .+/s,
          );
          refused += 1;
        }
      }),
      { numRuns: 3000 },
    );
    expect(refused).toBeGreaterThan(500);
  });

  it("writes both sides of a result with their own types", () => {
    setCodeGeneration(generates);
    const type = ours.Result.getAlgebraicType(A.U32, A.String);
    expect(hex(encode(ours, type, { err: "no" }))).toBe("01020000006e6f");
    expect(hex(encode(ours, type, { ok: 7 }))).toBe("0007000000");
  });

  it("follows references, also of a type to itself", () => {
    setCodeGeneration(generates);
    const typespace: ours.TypespaceType = {
      types: [
        A.Sum({
          variants: [
            { name: "nil", algebraicType: unit },
            { name: "cons", algebraicType: A.Ref(1) },
          ],
        }),
        A.Product({
          elements: [
            { name: "head", algebraicType: A.U8 },
            { name: "tail", algebraicType: A.Ref(0) },
          ],
        }),
      ],
    };
    const list = {
      tag: "cons",
      value: { head: 1, tail: { tag: "cons", value: { head: 2, tail: { tag: "nil", value: {} } } } },
    };
    const writer = new ours.BinaryWriter(1);
    A.makeSerializer(A.Ref(0), typespace)(writer, list);
    expect(hex(writer.getBuffer())).toBe("0101010200");
    expect(A.makeDeserializer(A.Ref(0), typespace)(new ours.BinaryReader(writer.getBuffer()))).toEqual(list);
  });

  it("handles a type that contains itself without references", () => {
    setCodeGeneration(generates);
    const tree: any = ours.t.object("Tree", {
      label: ours.t.u8(),
      get children(): any {
        return ours.t.array(tree);
      },
    });
    const value = {
      label: 1,
      children: [
        { label: 2, children: [] },
        { label: 3, children: [{ label: 4, children: [] }] },
      ],
    };
    const writer = new ours.BinaryWriter(1);
    tree.serialize(writer, value);
    expect(hex(writer.getBuffer())).toBe("010200000002000000000301000000" + "0400000000");
    expect(tree.deserialize(new ours.BinaryReader(writer.getBuffer()))).toEqual(value);
  });

  it.each<[string, ours.AlgebraicType, string, RegExp]>([
    ["tag", A.Sum({ variants: [{ name: "a", algebraicType: unit }] }), "03", /tag 3.*LC0802/],
    ["option", ours.Option.getAlgebraicType(A.U8), "02", /tag 2.*LC0802/],
    ["short number", A.U32, "0102", /bounds/],
    ["short string", A.String, "050000006162", /5 byte.*LC0801/],
    ["long bytes", A.Array(A.U8), "ffffffff00", /4294967295 byte.*LC0801/],
    ["long array", A.Array(A.U16), "ffffffff0000", /bounds/],
    ["array of nothing", A.Array(unit), "ffffffff", /4294967295 elements.*LC0803/],
  ])("refuses %s", (_name, type, input, message) => {
    setCodeGeneration(generates);
    const reader = new ours.BinaryReader(Buffer.from(input, "hex"));
    expect(() => A.makeDeserializer(type)(reader)).toThrow(message);
  });

  it.each<[string, ours.AlgebraicType, unknown, RegExp]>([
    [
      "unknown variant",
      A.Sum({ variants: [{ name: "a", algebraicType: unit }] }),
      { tag: "z" },
      /named z.*LC0803/,
    ],
    ["no result", ours.Result.getAlgebraicType(A.U8, A.U8), {}, /LC0803/],
  ])("refuses to write %s", (_name, type, value, message) => {
    setCodeGeneration(generates);
    expect(() => encode(ours, type, value)).toThrow(message);
  });

  it("keeps a byte order mark", () => {
    setCodeGeneration(generates);
    const text = "\ufeffx".repeat(30);
    expect(A.makeDeserializer(A.String)(new ours.BinaryReader(encode(ours, A.String, text)))).toBe(text);
  });
});
