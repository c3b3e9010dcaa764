// A key of the registry whose connector is still to be written.

import { type ConnectorDefinition, NotRunning } from "./connector";

export const notWritten = (key: string): ConnectorDefinition => ({
  key,
  startCommand: "(the connector is not written yet)",
  prepare: () => Promise.reject(new NotRunning(`${key} is not written yet`)),
  create: () => {
    throw new NotRunning(`${key} is not written yet`);
  },
});
