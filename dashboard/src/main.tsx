import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { restore } from "./session";
import "./theme";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/controls.css";
import "./styles/lists.css";
import "./styles/grid.css";
import "./styles/dialogs.css";
import "./styles/charts.css";
import "./styles/pages.css";
import "./styles/narrow.css";

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
