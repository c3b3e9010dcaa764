// The first page: it asks for a token, or makes a visitor.

import { type ReactNode, useState } from "react";
import { messageOf } from "./api";
import { logIn, visit } from "./session";
import { Button, Note } from "./ui";

export function Login(): ReactNode {
  const [token, setToken] = useState("");
  const [isKept, setKept] = useState(false);
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const attempt = (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    work()
      .catch((failure) => setError(messageOf(failure)))
      .finally(() => setBusy(false));
  };
  return (
    <main className="login">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          attempt(() => logIn(token, isKept));
        }}
      >
        <h1>
          <Mark /> Lightcone
        </h1>
        <p className="lead">Look into the databases of this server.</p>
        <label className="field">
          <span>Token</span>
          <textarea
            name="token"
            className="mono"
            rows={4}
            value={token}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => setToken(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              event.currentTarget.form!.requestSubmit();
            }}
          />
          <small>
            <code>spacetime login show --token</code> prints yours. It goes to this server only.
          </small>
        </label>
        <label className="check">
          <input type="checkbox" checked={isKept} onChange={(event) => setKept(event.target.checked)} />
          Keep me logged in with this browser
        </label>
        {error && <Note tone="bad">{error}</Note>}
        <Button kind="primary" submit disabled={isBusy || token.trim() === ""}>
          Log in
        </Button>
        <div className="or">or</div>
        <Button onClick={() => attempt(visit)} disabled={isBusy}>
          Continue as a visitor
        </Button>
        <p className="fine">
          A visitor gets a new identity, and sees what all callers may see: public tables and public
          functions.
        </p>
      </form>
    </main>
  );
}

export const Mark = (): ReactNode => (
  <svg className="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d="M4 3h16L12 12zM4 21h16L12 12z" />
  </svg>
);
