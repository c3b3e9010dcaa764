// The page of typed_hooks.test.ts.

import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { SpacetimeDBProvider, useProcedure, useReducer, useTable } from "../../src/react";
import { loadBindings } from "../../src/typed";

declare const SERVER: string;

const { builder, tables, reducers, procedures } = await loadBindings<typeof import("./typed_module")>({
  uri: SERVER,
  databaseName: "typed",
});
const connectionBuilder = builder();

function Letters() {
  const [letters, isReady] = useTable(tables["mail.sentLetter"].where((letter) => letter.toWhom.ne("")));
  const send = useReducer(reducers["mail.sendLetter"]);
  const count = useProcedure(procedures["mail.countLetters"]);
  const [sent, setSent] = useState(0n);
  if (!isReady) return <p>loading</p>;
  return (
    <>
      <button type="button" onClick={() => send({ toWhom: "ann" })}>
        Send
      </button>
      <button type="button" onClick={() => count().then(setSent)}>
        Count
      </button>
      <p>{String(sent)} sent</p>
      <ul>
        {letters.map((letter) => (
          <li key={letter.letterId}>to {letter.toWhom}</li>
        ))}
      </ul>
    </>
  );
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <SpacetimeDBProvider connectionBuilder={connectionBuilder}>
      <Letters />
    </SpacetimeDBProvider>
  </StrictMode>,
);
