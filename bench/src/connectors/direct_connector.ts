// The bench process speaks to a database itself: no server in between, so another class than the full stacks (section 13).
// What a server would do is done here, under the same names.

import type { RpcMethods } from "../rpc-servers/rpc";
import { AccountsConnector } from "./accounts_connector";
import type { CallArguments, Connector } from "./connector";

/** A connection or a pool, and what can be asked of it. */
export interface DirectClient {
  methods: RpcMethods;
  close(): unknown;
}

export interface DirectOptions {
  name: string;
  initialBalance: number;
  /** Workers have the client of the root together, or each its own. */
  isShared: boolean;
  connect(): Promise<DirectClient>;
}

export class DirectConnector extends AccountsConnector {
  private client: DirectClient | undefined;

  constructor(
    private readonly options: DirectOptions,
    private readonly root?: DirectConnector,
  ) {
    super(options.name, options.initialBalance, root !== undefined);
  }

  async open(): Promise<void> {
    this.client = await this.options.connect();
  }

  async close(): Promise<void> {
    await this.client?.close();
    this.client = undefined;
  }

  async createWorker(): Promise<Connector> {
    const worker = new DirectConnector(this.options, this);
    if (!this.options.isShared) await worker.open();
    return worker;
  }

  async call(name: string, args: CallArguments = {}): Promise<unknown> {
    const client = this.client ?? this.root?.client;
    if (!client) throw new Error(`${this.name}: not open`);
    const method = Object.hasOwn(client.methods, name) ? client.methods[name] : undefined;
    if (!method) throw new Error(`${this.name}: unknown method: ${name}`);
    return method(args);
  }
}
