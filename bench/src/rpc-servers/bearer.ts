// Signed bearer tokens (JWT, HS256), as the servers of authed-load check them at every request (section 19).

import { createHmac, timingSafeEqual } from "node:crypto";

const header = Buffer.from(JSON.stringify({ alg: "HS256", typ: "JWT" })).toString("base64url");

const signatureOf = (signed: string, secret: string) => createHmac("sha256", secret).update(signed).digest();

export function signToken(subject: string, secret: string, expiresAt: number): string {
  const claims = Buffer.from(JSON.stringify({ sub: subject, exp: Math.floor(expiresAt / 1000) })).toString(
    "base64url",
  );
  const signed = `${header}.${claims}`;
  return `${signed}.${signatureOf(signed, secret).toString("base64url")}`;
}

/** Whose token it is; undefined if it is none, not signed with the secret, or too old. */
export function verifyToken(token: string, secret: string, now: number): string | undefined {
  const [head, claims, signature, ...rest] = token.split(".");
  if (head !== header || !claims || !signature || rest.length > 0) return undefined;
  const given = Buffer.from(signature, "base64url");
  const wanted = signatureOf(`${head}.${claims}`, secret);
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined;
  const { sub, exp } = JSON.parse(Buffer.from(claims, "base64url").toString("utf8")) as {
    sub: string;
    exp: number;
  };
  return exp * 1000 > now ? sub : undefined;
}
