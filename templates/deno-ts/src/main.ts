// A server of pages that is a client of the database: it follows the rows, and tells each open page of them.
import { DbConnection, tables } from './module_bindings';

const connection = DbConnection.builder()
  .withUri(Deno.env.get('SPACETIMEDB_HOST') ?? 'http://127.0.0.1:3000')
  .withDatabaseName(Deno.env.get('SPACETIMEDB_DB_NAME') ?? '{{database}}')
  .withReconnect()
  .onConnectError((_ctx, error) => console.error('Cannot connect:', error.message))
  .build();
connection.subscriptionBuilder().onApplied(tell).subscribe(tables.person);
connection.db.person.onInsert(tell);
connection.db.person.onDelete(tell);

/** One for each open page. */
const pages = new Set<ReadableStreamDefaultController<Uint8Array>>();
const message = () => new TextEncoder().encode(`data: ${JSON.stringify([...connection.db.person.iter()])}\n\n`);

function tell() {
  for (const page of pages) page.enqueue(message());
}

function events(): Response {
  let page: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      pages.add((page = controller));
      page.enqueue(message());
    },
    cancel: () => void pages.delete(page),
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

async function add(request: Request): Promise<Response> {
  try {
    await connection.reducers.add({ name: await request.text() });
    return new Response();
  } catch (error) {
    return new Response((error as Error).message, { status: 400 });
  }
}

async function file(name: string, type: string): Promise<Response> {
  const body = await Deno.readTextFile(new URL(name, import.meta.url));
  return new Response(body, { headers: { 'content-type': type } });
}

Deno.serve({ port: Number(Deno.env.get('PORT') ?? 8000) }, request => {
  switch (`${request.method} ${new URL(request.url).pathname}`) {
    case 'GET /':
      return file('index.html', 'text/html; charset=utf-8');
    case 'GET /style.css':
      return file('style.css', 'text/css; charset=utf-8');
    case 'GET /events':
      return events();
    case 'POST /add':
      return add(request);
    default:
      return new Response('Not found', { status: 404 });
  }
});
