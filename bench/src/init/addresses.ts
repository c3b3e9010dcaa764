// Addresses of systems that run already, and what errors of connections say.

import type { Started } from "../connectors/definition";
import { processesListeningOn } from "../core/cpu";

/** Whether an address is one of this machine's own. */
export function isLocal(url: string): boolean {
  if (!URL.canParse(url)) return false;
  return ["127.0.0.1", "localhost", "[::1]", "::1"].includes(new URL(url).hostname);
}

/** A system that was found running: it stays as it is. Its processes are found by the port where it listens. */
export const foundAt = (url: string, defaultPort = 80): Started => ({
  url,
  processes: () => (isLocal(url) ? processesListeningOn(Number(new URL(url).port || defaultPort)) : null),
  stop: async () => {},
});

/** Where a database is, without its password. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return "an address that is no URL";
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}:${port || 5432}${pathname}`;
}

/** What an error says; several addresses tried in vain are told one by one. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  if (error instanceof Error && error.cause instanceof Error) return messageOf(error.cause);
  return error instanceof Error ? error.message : String(error);
}
