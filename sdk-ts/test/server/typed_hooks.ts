// The hooks of each framework with the types of a module's sources: what the compiler says. They are not called.

import { expectTypeOf } from "vitest";
import * as angular from "../../src/angular";
import * as react from "../../src/react";
import * as solid from "../../src/solid";
import * as svelte from "../../src/svelte";
import type { Bindings } from "../../src/typed";
import * as vue from "../../src/vue";

type Module = typeof import("./typed_module");
type Letter = { letterId: number; toWhom: string };

export function ofReact({ builder, tables, reducers, procedures }: Bindings<Module>): void {
  react.SpacetimeDBProvider({ connectionBuilder: builder() });
  const [cards, isReady] = react.useTable(tables.boardCard.where((card) => card.isDone.eq(false)));
  expectTypeOf(isReady).toEqualTypeOf<boolean>();
  expectTypeOf(cards[0]!.color).toEqualTypeOf<{ tag: "Red" } | { tag: "LightBlue" }>();
  const [letters] = react.useTable(tables["mail.sentLetter"]);
  expectTypeOf(letters[0]!).branded.toEqualTypeOf<Letter>();
  expectTypeOf(react.useReducer(reducers.finishCard))
    .parameter(0)
    .branded.toEqualTypeOf<{ cardId: bigint }>();
  expectTypeOf(react.useProcedure(procedures["mail.countLetters"])).returns.resolves.toEqualTypeOf<bigint>();
  // @ts-expect-error: the module's name is not the client's.
  tables["mail.sentLetter"].where((letter) => letter.to_whom.eq("ann"));
  // @ts-expect-error: a type of another parameter.
  react.useReducer(reducers.finishCard)({ cardId: "1" });
  // @ts-expect-error: there is none.
  react.useTable(tables.absent);
}

export function ofVue({ builder, tables, reducers, procedures }: Bindings<Module>): void {
  vue.useSpacetimeDBProvider(builder());
  const [cards] = vue.useTable(() => tables.boardCard.where((card) => card.slugText.eq("one")));
  expectTypeOf(cards.value[0]!.slugText).toEqualTypeOf<string>();
  const [letters] = vue.useTable(tables["mail.sentLetter"]);
  expectTypeOf(letters.value[0]!.toWhom).toEqualTypeOf<string>();
  expectTypeOf(vue.useReducer(reducers["mail.sendLetter"])).parameter(0).toEqualTypeOf<{ toWhom: string }>();
  expectTypeOf(vue.useProcedure(procedures.ping)).returns.resolves.toEqualTypeOf<string>();
  // @ts-expect-error: a type of another parameter.
  vue.useReducer(reducers["mail.sendLetter"])({ toWhom: 1 });
}

export function ofSvelte({ builder, tables, reducers, procedures }: Bindings<Module>): void {
  svelte.createSpacetimeDBProvider(builder());
  const [cards] = svelte.useTable(tables.boardCard);
  cards.subscribe((rows) => expectTypeOf(rows[0]!.slugText).toEqualTypeOf<string>());
  const [letters] = svelte.useTable(tables["mail.sentLetter"]);
  letters.subscribe((rows) => expectTypeOf(rows[0]!).branded.toEqualTypeOf<Letter>());
  expectTypeOf(svelte.useReducer(reducers["mail.sendLetter"]))
    .parameter(0)
    .toEqualTypeOf<{ toWhom: string }>();
  expectTypeOf(svelte.useProcedure(procedures.ping)).returns.resolves.toEqualTypeOf<string>();
  // @ts-expect-error: a type of another parameter.
  svelte.useReducer(reducers["mail.sendLetter"])({ toWhom: 1 });
}

export function ofSolid({ builder, tables, reducers, procedures }: Bindings<Module>): void {
  solid.SpacetimeDBProvider({ connectionBuilder: builder() });
  const [cards] = solid.useTable(() => tables.boardCard);
  expectTypeOf(cards[0]!.slugText).toEqualTypeOf<string>();
  const [letters] = solid.useTable(() => tables["mail.sentLetter"]);
  expectTypeOf(letters[0]!.toWhom).toEqualTypeOf<string>();
  expectTypeOf(solid.useReducer(reducers["mail.sendLetter"]))
    .parameter(0)
    .toEqualTypeOf<{ toWhom: string }>();
  expectTypeOf(solid.useProcedure(procedures.ping)).returns.resolves.toEqualTypeOf<string>();
  // @ts-expect-error: a type of another parameter.
  solid.useReducer(reducers["mail.sendLetter"])({ toWhom: 1 });
}

export function ofAngular({ builder, tables, reducers, procedures }: Bindings<Module>): void {
  angular.provideSpacetimeDB(builder());
  const cards = angular.injectTable(() => tables.boardCard);
  expectTypeOf(cards().rows[0]!.slugText).toEqualTypeOf<string>();
  const letters = angular.injectTable(tables["mail.sentLetter"]);
  expectTypeOf(letters().rows[0]!).branded.toEqualTypeOf<Letter>();
  expectTypeOf(angular.injectReducer(reducers["mail.sendLetter"]))
    .parameter(0)
    .toEqualTypeOf<{ toWhom: string }>();
  expectTypeOf(angular.injectProcedure(procedures.ping)).returns.resolves.toEqualTypeOf<string>();
  // @ts-expect-error: a type of another parameter.
  angular.injectReducer(reducers["mail.sendLetter"])({ toWhom: 1 });
}
