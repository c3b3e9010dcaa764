import { badValue } from "../core/errors";
import type { Identity } from "../core/identity";
import type { MethodOrAny } from "../core/module_def";
import type { UntypedSchemaDef } from "../core/schema";
import type { Timestamp } from "../core/timestamp";
import type { Uuid } from "../core/uuid";
import { type HttpClient, Request, SyncResponse } from "./http";
import { decodeRequest, encodeResponse, methodFromText } from "./http_types";
import type { TransactionCtx } from "./procedures";
import type { Random } from "./random";
import { asExport, type ModuleExport, registerExport } from "./registry";

export type HandlerAliasViews<SchemaDef extends UntypedSchemaDef> = SchemaDef extends {
  namespaces: infer NS extends Record<string, UntypedSchemaDef>;
}
  ? { readonly [K in keyof NS]: HandlerContext<NS[K]> }
  : {};

/** What a handler gets besides the request. It reaches the tables by `withTx`. */
export interface HandlerContext<S extends UntypedSchemaDef = UntypedSchemaDef> {
  readonly timestamp: Timestamp;
  readonly http: HttpClient;
  /** The identity of the database. */
  readonly identity: Identity;
  readonly random: Random;
  readonly as: HandlerAliasViews<S>;
  withTx<T>(body: (ctx: TransactionCtx<S>) => T): T;
  newUuidV4(): Uuid;
  newUuidV7(): Uuid;
}

export type HandlerFn<S extends UntypedSchemaDef = UntypedSchemaDef> = (
  ctx: HandlerContext<S>,
  req: Request,
) => SyncResponse;

/** A handler, to be exported. */
export interface HttpHandlerExport<S extends UntypedSchemaDef = UntypedSchemaDef>
  extends HandlerFn<S>,
    ModuleExport {}

export interface HttpHandlerOpts {
  name: string;
}

type RouteSpec = { handler: HttpHandlerExport<any>; method: MethodOrAny; path: string };

const ROUTE_PATH = /^(?:\/[a-z0-9\-_~/]*)?$/;

/** Which handler answers which method and path. Each method gives a new router. */
export class Router {
  readonly #routes: readonly RouteSpec[];

  constructor(routes: RouteSpec[] = []) {
    this.#routes = routes;
  }

  #with(method: MethodOrAny, path: string, handler: HttpHandlerExport<any>): Router {
    if (!ROUTE_PATH.test(path)) {
      throw badValue(
        `"${path}" cannot be a route: it starts with "/", and has only a-z, 0-9, "-", "_", "~" and "/"`,
      );
    }
    return new Router([...this.#routes, { handler, method, path }]);
  }

  #method(name: string, path: string, handler: HttpHandlerExport<any>): Router {
    return this.#with({ tag: "Method", value: methodFromText(name) }, path, handler);
  }

  get(path: string, handler: HttpHandlerExport<any>): Router {
    return this.#method("GET", path, handler);
  }
  head(path: string, handler: HttpHandlerExport<any>): Router {
    return this.#method("HEAD", path, handler);
  }
  options(path: string, handler: HttpHandlerExport<any>): Router {
    return this.#method("OPTIONS", path, handler);
  }
  put(path: string, handler: HttpHandlerExport<any>): Router {
    return this.#method("PUT", path, handler);
  }
  delete(path: string, handler: HttpHandlerExport<any>): Router {
    return this.#method("DELETE", path, handler);
  }
  post(path: string, handler: HttpHandlerExport<any>): Router {
    return this.#method("POST", path, handler);
  }
  patch(path: string, handler: HttpHandlerExport<any>): Router {
    return this.#method("PATCH", path, handler);
  }
  /** Any method. */
  any(path: string, handler: HttpHandlerExport<any>): Router {
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

  intoRoutes(): RouteSpec[] {
    return [...this.#routes];
  }
}

export function makeHttpHandlerExport(
  opts: HttpHandlerOpts | undefined,
  fn: HandlerFn<any>,
): HttpHandlerExport<any> {
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
