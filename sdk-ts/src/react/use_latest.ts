// Values that callbacks need as the latest rendering had them.

import * as React from "react";

/** A function, always the same, that returns the value of the latest rendering. */
export function useLatest<T>(value: T): () => T {
  const latest = React.useRef(value);
  React.useEffect(() => {
    latest.current = value;
  });
  return React.useCallback(() => latest.current, []);
}
