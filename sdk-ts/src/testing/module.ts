// A module that is built once, and published into as many databases as there are tests.

import { TestDatabase } from "./database";
import { loadProgram, type Program } from "./program";
import { OWNER, sharedServer, type TestServer, type TestServerOptions } from "./server";

/** A module, ready to be published. */
export class TestModule {
  /** @internal */
  readonly server: TestServer;
  /** @internal */
  readonly program: Program;

  private constructor(server: TestServer, program: Program) {
    this.server = server;
    this.program = program;
  }

  /**
   * Builds the module in a directory with `spacetime build`, or takes a file, `.js` or `.wasm`, that is built already. The first call
   * in a process starts the server.
   */
  static async load(path: string, options: TestServerOptions = {}): Promise<TestModule> {
    const server = await sharedServer(options);
    return new TestModule(server, await loadProgram(path, server.programs));
  }

  /** Publishes the module into a new database, which `init` has been run in when the promise resolves. */
  async publish(): Promise<TestDatabase> {
    const { hostType, bytes } = this.program;
    const response = await this.server.request(OWNER, "POST", `/v1/database?host_type=${hostType}`, bytes);
    const { Success } = (await response.json()) as { Success: { database_identity: string } };
    return new TestDatabase(this.server, Success.database_identity);
  }
}
