// Pages that wake up.

/** Calls `listener` when the page may have slept or been without a network; returns how to stop that. */
export function onPageResumed(listener: () => void): () => void {
  if (typeof document === "undefined") return () => {};
  const onEvent = (): void => {
    if (document.visibilityState !== "hidden") listener();
  };
  const types = ["online", "pageshow", "visibilitychange"];
  for (const type of types) addEventListener(type, onEvent, true);
  return () => {
    for (const type of types) removeEventListener(type, onEvent, true);
  };
}
