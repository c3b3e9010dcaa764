// TCP alone: whether a program listens, and how far away a system is (section 12, claim 11).

import { connect } from "node:net";
import { median } from "./statistics";

const probes = 15;
const probeMilliseconds = 2000;

/** How long it takes to connect, in milliseconds. */
function handshake(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const socket = connect({ host, port, timeout: probeMilliseconds });
    socket.once("connect", () => {
      resolve(performance.now() - start);
      socket.destroy();
    });
    socket.once("timeout", () => socket.destroy(new Error("no answer")));
    socket.once("error", reject);
  });
}

/** Whether a program listens there. */
export const accepts = (host: string, port: number): Promise<boolean> =>
  handshake(host, port).then(
    () => true,
    () => false,
  );

/** Median of some handshakes with the host of an address, in milliseconds; null where there is no TCP port to ask. */
export async function roundTripMilliseconds(address: string): Promise<number | null> {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(address) ? address : `tcp://${address}`;
  if (!URL.canParse(withScheme)) return null;
  const { hostname, port, protocol } = new URL(withScheme);
  const number = Number(port) || ({ "http:": 80, "ws:": 80, "https:": 443, "wss:": 443 }[protocol] ?? 0);
  if (!hostname || number === 0) return null;
  try {
    const times: number[] = [];
    for (let i = 0; i < probes; i++) times.push(await handshake(hostname.replace(/^\[|\]$/g, ""), number));
    return Math.round(median(times) * 1000) / 1000;
  } catch {
    return null;
  }
}
