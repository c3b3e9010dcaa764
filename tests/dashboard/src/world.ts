// A server with the shop in it, for the tests of the dashboard and for its pictures.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { Server } from "../../e2e/src/server";

const root = join(import.meta.dirname, "../../..");
export const DATABASE = "shop";

/** Builds the module in `../module` against the package's sources, and publishes it. */
async function publish(server: Server): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "../module/index.ts")],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    external: ["spacetime:sys*"],
    alias: {
      "lightcone/server": join(root, "sdk-ts/src/server/index.ts"),
      lightcone: join(root, "sdk-ts/src/client/index.ts"),
    },
    logLevel: "error",
  });
  const path = server.home.path("shop.js");
  writeFileSync(path, outputFiles[0]!.text);
  await server.cliOk("publish", "--js-path", path, "--yes", DATABASE);
}

/** LIGHTCONE_DASHBOARD_DEV=1: the page is built from its sources, in front of the server, rather than what the server has inside. */
const IS_DEVELOPMENT = process.env["LIGHTCONE_DASHBOARD_DEV"] === "1";

export class World {
  #page: string;
  #front: ChildProcess | undefined;

  private constructor(
    readonly server: Server,
    readonly token: string,
  ) {
    this.#page = `${server.url}/dashboard/`;
  }

  static async start(customers = 240, orders = 1_200): Promise<World> {
    const server = await Server.start();
    await publish(server);
    const world = new World(server, server.ownerToken());
    await world.call("seed", customers, orders);
    if (IS_DEVELOPMENT) await world.#develop();
    return world;
  }

  /** Where the page is. */
  get page(): string {
    return this.#page;
  }

  async #develop(): Promise<void> {
    const script = join(root, "dashboard/scripts/dev.mjs");
    this.#front = spawn(process.execPath, [script, new URL(this.server.url).port, "0"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [address] = await once(this.#front.stdout!, "data");
    this.#page = String(address).trim();
  }

  async call(name: string, ...args: unknown[]): Promise<number> {
    const response = await this.server.fetch(`/v1/database/${DATABASE}/call/${name}`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      body: JSON.stringify(args),
    });
    await response.text();
    return response.status;
  }

  sql(text: string): Promise<unknown[][]> {
    return this.server.sql(DATABASE, text);
  }

  async fillReadings(count: number): Promise<void> {
    for (let from = 0; from < count; from += 50_000) {
      const status = await this.call("fill_readings", from, Math.min(50_000, count - from));
      if (status !== 200) throw new Error(`fill_readings: ${status}`);
    }
  }

  stop(): Promise<void> {
    this.#front?.kill();
    return this.server.stop();
  }
}
