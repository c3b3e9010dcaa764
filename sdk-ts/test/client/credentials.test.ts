// Tokens: asked for at each attempt, refused by the server, and the endpoint that is busy for a while.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { ClientError, setGlobalLogLevel, type TokenRequest } from "../../src/client";
import { DbConnection } from "./bindings";
import { FakeServer, serverMessage, settle, until } from "./fake_server";

const refusal = new ClientError("LC0832", "Failed to verify token: Unauthorized");

let server: FakeServer;
beforeEach(() => {
  server = new FakeServer();
  setGlobalLogLevel("error");
});

const builder = () =>
  DbConnection.builder().withUri("ws://localhost:1").withDatabaseName("x").withWSFn(server.factory);
const tokens = (): unknown[] => server.attempts.map(({ authToken }) => authToken);

function greet(token = "the server's"): void {
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection(token));
}

describe("a function for tokens", () => {
  test("is asked at each attempt, and its last token is the connection's", async () => {
    let asked = 0;
    const connection = builder()
      .withToken(async () => `token ${++asked}`)
      .withReconnect({ baseDelayMs: 0 })
      .build();
    await settle();
    greet();
    expect(connection.token).toBe("token 1");
    server.socket.drop();
    await until("another attempt", () => server.sockets.length === 2);
    greet();
    expect(tokens()).toEqual(["token 1", "token 2"]);
    expect(connection.token).toBe("token 2");
    connection.disconnect();
  });

  test("that fails is asked again, as a server that fails is", async () => {
    let asked = 0;
    const errors: Error[] = [];
    const connection = builder()
      .withToken(() => {
        if (++asked < 3) throw new Error("no session");
        return undefined;
      })
      .withReconnect({ baseDelayMs: 0 })
      .onConnectError((_, error) => errors.push(error))
      .build();
    await until("an attempt", () => server.sockets.length === 1);
    greet();
    expect(errors.map((error) => (error as ClientError).code)).toEqual(["LC0855", "LC0855"]);
    expect(errors[0]!.message).toContain("no session");
    expect(connection.token).toBe("the server's");
    connection.disconnect();
  });

  test("that answers too late does not change the token of a later attempt", async () => {
    const answers: ((token: string) => void)[] = [];
    const connection = builder()
      .withToken(() => new Promise<string>((resolve) => answers.push(resolve)))
      .withConnectTimeout(500)
      .withReconnect({ baseDelayMs: 0 })
      .build();
    await until("another attempt", () => answers.length > 1);
    answers.at(-1)!("second");
    await until("a socket", () => server.sockets.length === 1);
    greet();
    answers[0]!("first");
    await settle();
    expect(connection.token).toBe("second");
    expect(tokens()).toEqual(["second"]);
    connection.disconnect();
  });

  test("is told which token was refused, and asked a few times only", async () => {
    const requests: TokenRequest[] = [];
    server.refusal = refusal;
    const errors: Error[] = [];
    const connection = builder()
      .withToken((request) => {
        requests.push(request);
        return "always the same";
      })
      .withReconnect({ baseDelayMs: 0 })
      .onConnectError((_, error) => errors.push(error))
      .build();
    await until("the end", () => connection.isClosed);
    expect(requests).toEqual([
      { refusedToken: undefined },
      ...Array(3).fill({ refusedToken: "always the same" }),
    ]);
    expect(errors).toEqual([refusal]);
    expect(connection.connectionError).toBe(refusal);
  });
});

test.each([null, ""])("%j, as storages have it, is no token", async (token) => {
  const connection = builder()
    .withToken(token as never)
    .build();
  await settle();
  greet();
  expect(tokens()).toEqual([undefined]);
  expect(connection.token).toBe("the server's");
  connection.disconnect();
});

describe("a refused token", () => {
  test("ends the connection without onUnauthorized", async () => {
    server.refusal = refusal;
    const connection = builder().withToken("stale").withReconnect({ baseDelayMs: 0 }).build();
    await until("the end", () => connection.isClosed);
    expect(tokens()).toEqual(["stale"]);
  });

  test.each([
    ["a new identity", undefined, undefined, "the server's"],
    ["another token", "fresh", "fresh", "fresh"],
  ])("onUnauthorized: %s", async (_, answer, sent, kept) => {
    server.refusal = refusal;
    const errors: unknown[] = [];
    const connection = builder()
      .withToken("stale")
      .onConnectError((_, error) => errors.push(error))
      .onUnauthorized((error) => {
        expect(error).toBe(refusal);
        server.refusal = undefined;
        return answer;
      })
      .build();
    await until("another attempt", () => server.sockets.length === 1);
    greet();
    expect(tokens()).toEqual(["stale", sent]);
    expect(connection.token).toBe(kept);
    expect(connection.isActive).toBe(true);
    expect(errors).toEqual([]);
    connection.disconnect();
  });

  test("a handler that only has refused tokens is asked a few times only", async () => {
    server.refusal = refusal;
    let asked = 0;
    const connection = builder()
      .withToken("stale")
      .onUnauthorized(() => `guess ${++asked}`)
      .withReconnect({ baseDelayMs: 0 })
      .build();
    await until("the end", () => connection.isClosed);
    expect(tokens()).toEqual(["stale", "guess 1", "guess 2", "guess 3"]);
  });
});

describe("the endpoint for tokens", () => {
  let http: Server;
  let sockets: WebSocketServer;
  /** What it answers, in turn; the last one again and again. */
  let answers: [status: number, body: string, retryAfter?: string][];
  let times: number[];

  beforeEach(async () => {
    times = [];
    http = createServer((_, response) => {
      times.push(performance.now());
      const [status, body, retryAfter] = answers.length > 1 ? answers.shift()! : answers[0]!;
      response.writeHead(status, retryAfter ? { "retry-after": retryAfter } : {}).end(body);
    });
    sockets = new WebSocketServer({ server: http, handleProtocols: () => "v3.bsatn.spacetimedb" });
    sockets.on("connection", (socket) => {
      const greeting = serverMessage.initialConnection("other");
      socket.send(Uint8Array.from([0, ...greeting]));
    });
    await new Promise<void>((done) => http.listen(0, "127.0.0.1", done));
  });
  afterEach(() => {
    sockets.close();
    http.closeAllConnections();
    http.close();
  });

  const connect = () => {
    const errors: Error[] = [];
    const connection = DbConnection.builder()
      .withUri(`http://127.0.0.1:${(http.address() as AddressInfo).port}`)
      .withDatabaseName("x")
      .withToken("long")
      .onConnectError((_, error) => errors.push(error))
      .build();
    return { connection, errors };
  };
  const good: [number, string] = [200, '{"token":"short"}'];

  test("that is busy is asked again, and not before it wishes", async () => {
    answers = [[429, "slow down", "1"], [503, "restarting"], [408, ""], good];
    const { connection, errors } = connect();
    await until("a connection", () => connection.isActive);
    expect(errors).toEqual([]);
    expect(times).toHaveLength(4);
    expect(times[1]! - times[0]!).toBeGreaterThan(990);
    expect(connection.token).toBe("long");
    connection.disconnect();
  });

  test("that stays busy is given up, with an error that may pass", async () => {
    answers = [[503, "no"]];
    const { connection, errors } = connect();
    await until("the end", () => connection.isClosed);
    expect(times).toHaveLength(4);
    expect(errors).toMatchObject([{ code: "LC0831", message: expect.stringContaining("no") }]);
  });

  test("that wants a long time is not waited for within an attempt", async () => {
    answers = [[429, "later", "3600"]];
    const { connection, errors } = connect();
    await until("the end", () => connection.isClosed);
    expect(times).toHaveLength(1);
    expect(errors).toMatchObject([{ code: "LC0831", retryAfterMs: 3_600_000 }]);
  });

  test("that refuses is asked once", async () => {
    answers = [[401, "Invalid token: ExpiredSignature"]];
    const { connection, errors } = connect();
    await until("the end", () => connection.isClosed);
    expect(times).toHaveLength(1);
    expect(errors).toMatchObject([{ code: "LC0832" }]);
    expect(errors[0]!.message).toContain(
      "Failed to verify token: Unauthorized: Invalid token: ExpiredSignature",
    );
  });

  test("that answers with a page says so", async () => {
    answers = [[200, "<html>welcome</html>"]];
    const { connection, errors } = connect();
    await until("the end", () => connection.isClosed);
    expect(errors).toMatchObject([
      { code: "LC0831", message: expect.stringContaining("did not answer with a token") },
    ]);
  });
});
