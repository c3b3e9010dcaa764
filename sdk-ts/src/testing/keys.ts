// The users of tests: tokens signed with the key of the server, which is made here.

import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/**
 * A user of a test. A name is always the same identity; `claims` are what the module finds in the token, beside the subject,
 * issuer and audience.
 */
export type TestUser =
  | string
  | { subject: string; issuer?: string; audience?: string[]; claims?: Record<string, unknown> };

/** The issuer of users that name none: that of the server's own tokens. */
const LOCAL_ISSUER = "localhost";

/** The key pair of a server for tests. */
export class ServerKeys {
  readonly publicPem: string;
  readonly privatePem: string;
  readonly #key: KeyObject;

  constructor() {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.publicPem = publicKey.export({ type: "spki", format: "pem" }).toString();
    this.privatePem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    this.#key = privateKey;
  }

  /** A token of a user; the server accepts whatever its own key has signed. */
  token(user: TestUser): string {
    const { subject, issuer, audience, claims } = typeof user === "string" ? { subject: user } : user;
    const payload = {
      iat: Math.floor(Date.now() / 1000),
      ...claims,
      sub: subject,
      iss: issuer ?? LOCAL_ISSUER,
      aud: audience ?? ["spacetimedb"],
    };
    const signed = [{ typ: "JWT", alg: "ES256" }, payload]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
      .join(".");
    const signature = sign("sha256", Buffer.from(signed), { key: this.#key, dsaEncoding: "ieee-p1363" });
    return `${signed}.${signature.toString("base64url")}`;
  }
}
