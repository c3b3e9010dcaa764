import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { restore } from "./session";
import "./theme";
import "./style.css";

const root = createRoot(document.getElementById("root")!);

restore()
  // A login that the server takes no more is like none; the page asks anew.
  .catch(() => {})
  .finally(() =>
    root.render(
      <StrictMode>
        <App />
      </StrictMode>,
    ),
  );
