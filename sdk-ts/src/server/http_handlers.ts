import { badValue } from "../core/errors";
import type { Identity } from "../core/identity";
import type { MethodOrAny } from "../core/module_def";
import type { AnySchema } from "../core/schema";
import type { Timestamp } from "../core/timestamp";
import type { AnyFunction } from "../core/untyped";
import type { Uuid } from "../core/uuid";
import type { SubmodulesOf } from "./ctx_types";
import type { Environment } from "./environment_access";
import { type HttpClient, Request, SyncResponse } from "./http";
import { decodeRequest, encodeResponse, methodFromText } from "./http_types";
import type { TransactionCtx } from "./procedures";
import type { Random } from "./random";
import { asExport, type FunctionOptions, type ModuleExport, registerExport } from "./registry";

/** The context of a handler, as the submodules of a module see it. */
type HandlerContexts<Submodules> = {
  readonly [Name in keyof Submodules]: Submodules[Name] extends AnySchema
    ? HandlerContext<Submodules[Name]>
    : never;
};

/** The context of a handler. It reaches the tables by `withTx`. */
export interface HandlerContext<S extends AnySchema = AnySchema> {
  /** Made up by the server for each request. */
  readonly sender: Identity;
  readonly timestamp: Timestamp;
  /** Variables of the environment. */
  readonly env: Environment;
  readonly http: HttpClient;
  /** The identity of the database. */
  readonly identity: Identity;
  readonly random: Random;
  readonly as: HandlerContexts<SubmodulesOf<S>>;
  withTx<T>(body: (ctx: TransactionCtx<S>) => T): T;
  newUuidV4(): Uuid;
  newUuidV7(): Uuid;
}

export type HandlerFn<S extends AnySchema = AnySchema> = (
  ctx: HandlerContext<S>,
  req: Request,
) => SyncResponse;

/** A handler, to be exported. */
export interface HttpHandlerExport<S extends AnySchema = AnySchema> extends HandlerFn<S>, ModuleExport {}

/** A request that a router knows, and who answers it. */
interface Route {
  path: string;
  method: MethodOrAny;
  handler: AnyHandler;
}

type AnyHandler = HttpHandlerExport<any>;

const ROUTE_PATH = /^(?:\/[a-z0-9\-_~/]*)?$/;

/** Which handler answers which method and path. Each method gives a new router. */
export class Router {
  readonly #routes: readonly Route[];

  constructor(routes: Route[] = []) {
    this.#routes = routes;
  }

  #with(method: MethodOrAny, path: string, handler: AnyHandler): Router {
    if (!ROUTE_PATH.test(path)) {
      throw badValue(
        `"${path}" cannot be a route: it starts with "/", and has only a-z, 0-9, "-", "_", "~" and "/"`,
      );
    }
    return new Router([...this.#routes, { handler, method, path }]);
  }

  #method(name: string, path: string, handler: AnyHandler): Router {
    return this.#with({ tag: "Method", value: methodFromText(name) }, path, handler);
  }

  get(path: string, handler: AnyHandler): Router {
    return this.#method("GET", path, handler);
  }
  head(path: string, handler: AnyHandler): Router {
    return this.#method("HEAD", path, handler);
  }
  options(path: string, handler: AnyHandler): Router {
    return this.#method("OPTIONS", path, handler);
  }
  put(path: string, handler: AnyHandler): Router {
    return this.#method("PUT", path, handler);
  }
  delete(path: string, handler: AnyHandler): Router {
    return this.#method("DELETE", path, handler);
  }
  post(path: string, handler: AnyHandler): Router {
    return this.#method("POST", path, handler);
  }
  patch(path: string, handler: AnyHandler): Router {
    return this.#method("PATCH", path, handler);
  }
  /** Any method. */
  any(path: string, handler: AnyHandler): Router {
    return this.#with({ tag: "Any" }, path, handler);
  }

  /** Adds the routes of another router below a path. */
  nest(path: string, subRouter: Router): Router {
    return subRouter
      .intoRoutes()
      .reduce<Router>(
        (router, route) => router.#with(route.method, path + route.path, route.handler),
        new Router([...this.#routes]),
      );
  }

  /** Adds the routes of another router. */
  merge(otherRouter: Router): Router {
    return new Router([...this.#routes, ...otherRouter.intoRoutes()]);
  }

  intoRoutes(): Route[] {
    return [...this.#routes];
  }
}

export function makeHttpHandlerExport(
  opts: FunctionOptions | undefined,
  fn: AnyFunction,
): AnyFunction & ModuleExport {
  return asExport(fn, (registry, exportName, exported) => {
    registry.defineFunction(exportName, exported);
    registry.moduleDef.httpHandlers.push({ sourceName: exportName });
    if (opts?.name !== undefined) registry.addExplicitName("Function", exportName, opts.name);
    registry.handlers.push(fn);
  });
}

export function makeHttpRouterExport(router: Router): ModuleExport {
  return {
    [registerExport](registry) {
      for (const route of router.intoRoutes()) registry.route(route);
    },
  };
}

/** The request that the host gives to a handler. */
export function readRequest(head: Uint8Array, body: Uint8Array): Request {
  const { uri, method, headers, version } = decodeRequest(head);
  // The host may use its bytes again.
  return new Request(uri, { method, headers, version, body: body.slice() });
}

/** The response of a handler, as the host wants it. */
export function writeResponse(response: unknown): [Uint8Array, Uint8Array] {
  if (!(response instanceof SyncResponse)) {
    throw badValue("An HTTP handler must return a SyncResponse");
  }
  const { headers, version, status } = response;
  return [encodeResponse({ headers, version, code: status }), response.bytes()];
}
