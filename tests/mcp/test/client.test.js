// The client of MCP's npm package against the server's endpoints and against `spacetime mcp`.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { BINARY, Home, startServer } from "../src/lightcone.js";

let server;
let home;
let token;

before(async () => {
  server = await startServer();
  home = new Home();
  token = home.publish(server.url, "bank");
  home.run("call", "bank", "seed", "3", "10", "-s", server.url);
});

after(async () => {
  home.remove();
  await server.stop();
});

/** A client that has shaken hands; `authorization` is none without a token. */
async function connect(path, authorization = token, at = server) {
  const headers = authorization ? { Authorization: `Bearer ${authorization}` } : {};
  const transport = new StreamableHTTPClientTransport(new URL(`${at.url}${path}`), {
    requestInit: { headers },
  });
  const client = new Client({ name: "lightcone-test", version: "1.0.0" });
  await client.connect(transport);
  return { client, transport };
}

async function tool(client, name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.content.length, 1);
  assert.equal(result.content[0].type, "text");
  return { text: result.content[0].text, failed: result.isError };
}

test("an assistant reads a database", async () => {
  const { client, transport } = await connect("/v1/database/bank/mcp");
  assert.equal(client.getServerVersion().name, "spacetimedb");
  assert.deepEqual(client.getServerCapabilities(), { tools: {} });
  assert.match(client.getInstructions(), /`bank`/);
  // It asks for a newer version, and takes the one that it is offered.
  assert.equal(transport.protocolVersion, "2025-06-18");
  await client.ping();
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map((tool) => tool.name),
    ["ping", "get_schema", "sql", "call"],
  );
  const schema = await tool(client, "get_schema");
  assert.ok(JSON.parse(schema.text).tables.some((table) => table.name === "accounts"));
  const rows = await tool(client, "sql", { sql: "SELECT * FROM accounts WHERE id = 1" });
  assert.deepEqual(JSON.parse(rows.text)[0].rows, [[1, 10]]);
  const wrong = await tool(client, "sql", { sql: "SELECT * FROM nothing" });
  assert.ok(wrong.failed && wrong.text.includes("nothing"), wrong.text);
  await assert.rejects(client.callTool({ name: "list_databases" }), /unknown tool: list_databases/);
  await client.close();
});

test("nothing is written unless the endpoint says so", async () => {
  const { client } = await connect("/v1/database/bank/mcp");
  for (const [name, args] of [
    ["call", { reducer: "transfer", args: [0, 1, 5] }],
    ["sql", { sql: "DELETE FROM accounts" }],
  ]) {
    const refused = await tool(client, name, args);
    assert.ok(refused.failed && /\?writes=true.*\[LC0150\]$/.test(refused.text), refused.text);
  }
  await client.close();
  const writing = (await connect("/v1/database/bank/mcp?writes=true")).client;
  const moved = await tool(writing, "call", { reducer: "transfer", args: [0, 1, 5] });
  assert.deepEqual(moved, { text: "reducer 'transfer' committed", failed: false });
  const overdrawn = await tool(writing, "call", { reducer: "transfer", args: [0, 1, 500] });
  assert.ok(overdrawn.failed && overdrawn.text.startsWith("reducer 'transfer' failed: "), overdrawn.text);
  const rows = await tool(writing, "sql", { sql: "SELECT balance FROM accounts WHERE id = 1" });
  assert.deepEqual(JSON.parse(rows.text)[0].rows, [[15]]);
  const changed = await tool(writing, "sql", { sql: "UPDATE accounts SET balance = 10 WHERE id < 2" });
  assert.equal(JSON.parse(changed.text)[0].stats.rows_updated, 2);
  await writing.close();
});

test("an assistant finds the databases of its login", async () => {
  const { client } = await connect("/v1/mcp");
  const listed = await tool(client, "list_databases");
  const [bank, ...others] = JSON.parse(listed.text).databases;
  assert.deepEqual([bank.names, others], [["bank"], []]);
  for (const database of ["bank", bank.identity]) {
    const rows = await tool(client, "sql", { database, sql: "SELECT COUNT(*) AS n FROM accounts" });
    assert.deepEqual(JSON.parse(rows.text)[0].rows, [[3]]);
  }
  await client.close();
});

test("a stranger's assistant is a stranger", async () => {
  for (const authorization of [null, await server.token()]) {
    const { client } = await connect("/v1/mcp?writes=true", authorization);
    assert.equal((await tool(client, "list_databases")).text, '{"databases":[]}');
    const refused = await tool(client, "sql", { database: "bank", sql: "DELETE FROM accounts" });
    assert.ok(refused.failed && refused.text.includes("is not authorized to run SQL DML"), refused.text);
    await client.close();
  }
  await assert.rejects(connect("/v1/mcp", "nonsense"));
});

test("many assistants at a time", async () => {
  const clients = await Promise.all(Array.from({ length: 20 }, () => connect("/v1/database/bank/mcp")));
  const asked = clients.flatMap(({ client }) =>
    [0, 1, 2].map((id) => tool(client, "sql", { sql: `SELECT id FROM accounts WHERE id = ${id}` })),
  );
  const answers = await Promise.all(asked);
  answers.forEach(({ text, failed }, index) => {
    assert.ok(!failed, text);
    assert.deepEqual(JSON.parse(text)[0].rows, [[index % 3]]);
  });
  await Promise.all(clients.map(({ client }) => client.close()));
});

test("the command line over stdio", async () => {
  const args = ["--config-path", home.config, "mcp", "bank", "-s", server.url];
  const transport = new StdioClientTransport({ command: BINARY, args, stderr: "inherit" });
  const client = new Client({ name: "lightcone-test", version: "1.0.0" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map((tool) => tool.name),
    ["ping", "get_schema", "sql", "logs"],
  );
  const rows = await tool(client, "sql", { sql: "SELECT COUNT(*) AS n FROM accounts" });
  assert.deepEqual(JSON.parse(rows.text)[0].rows, [[3]]);
  assert.match((await tool(client, "logs")).text, /seeded 3 accounts/);
  await client.close();
});
