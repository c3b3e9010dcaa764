// A shop, with something of everything that the dashboard shows. Some of its texts would be dangerous if a page took them for HTML.

import { Timestamp } from "lightcone";
import { Router, ScheduleAt, SenderError, SyncResponse, schema, t, table } from "lightcone/server";

const Status = t.enum("Status", ["open", "paid", "shipped", "returned"]);
const Address = t.object("Address", { street: t.string(), city: t.string(), zip: t.string() });

const customer = table(
  { name: "customer", public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    name: t.string().index("btree"),
    email: t.string().unique(),
    city: t.string(),
    is_member: t.bool(),
    joined: t.timestamp(),
  },
);

const order = table(
  { name: "order", public: true },
  {
    id: t.u64().primaryKey().autoInc(),
    customer: t.u64().index("btree"),
    total_cents: t.i64(),
    status: Status,
    note: t.option(t.string()),
    placed: t.timestamp().index("btree"),
  },
);

const product = table(
  { name: "product", public: true },
  {
    sku: t.string().primaryKey(),
    title: t.string(),
    price: t.f64(),
    stock: t.u32(),
    tags: t.array(t.string()),
  },
);

const delivery = table(
  { name: "delivery", public: true },
  { id: t.u64().primaryKey().autoInc(), order: t.u64(), to: Address, courier: t.identity() },
);

/** A million rows, for scrolling. */
const reading = table(
  { name: "reading", public: true },
  { id: t.u64().primaryKey(), sensor: t.u32().index("btree"), value: t.f64() },
);

const audit = table(
  { name: "audit" },
  { id: t.u64().primaryKey().autoInc(), who: t.identity(), what: t.string() },
);
const ping = table({ name: "ping", public: true, event: true }, { text: t.string(), at: t.timestamp() });

const restock = table(
  { name: "restock" },
  { scheduled_id: t.u64().primaryKey().autoInc(), scheduled_at: t.scheduleAt(), sku: t.string() },
);

const db = schema({ customer, order, product, delivery, reading, audit, ping, restock });
export default db;

const CITIES = ["Berlin", "Lisboa", "Kraków", "Oslo", "Wien", "Zürich", "Gent", "Malmö"];
const FIRST = ["Ada", "Grace", "Edsger", "Barbara", "Alan", "Margaret", "Dennis", "Frances", "Ken", "Radia"];
const LAST = [
  "Lovelace",
  "Hopper",
  "Dijkstra",
  "Liskov",
  "Turing",
  "Hamilton",
  "Ritchie",
  "Allen",
  "Thompson",
  "Perlman",
];
const WORDS = ["Lamp", "Desk", "Chair", "Shelf", "Clock", "Kettle", "Rug", "Mirror", "Vase", "Stool"];

export const seed = db.reducer({ customers: t.u32(), orders: t.u32() }, (ctx, { customers, orders }) => {
  const now = ctx.timestamp.microsSinceUnixEpoch;
  for (let at = 0; at < customers; at++) {
    const name = `${FIRST[at % 10]} ${LAST[(at * 7 + Math.floor(at / 10)) % 10]}`;
    ctx.db.customer.insert({
      id: 0n,
      name,
      email: `${name.toLowerCase().replace(" ", ".")}.${at}@example.com`,
      city: CITIES[(at * 5) % 8]!,
      is_member: at % 3 === 0,
      joined: new Timestamp(now - BigInt(at) * 86_400_000_000n),
    });
  }
  for (let at = 0; at < orders; at++) {
    ctx.db.order.insert({
      id: 0n,
      customer: BigInt((at % Math.max(1, customers)) + 1),
      total_cents: BigInt(900 + ((at * 7919) % 42_000)),
      status: {
        tag: (["open", "paid", "paid", "shipped", "shipped", "shipped", "returned"] as const)[at % 7]!,
      },
      note: at % 5 === 0 ? "leave at the door" : undefined,
      placed: new Timestamp(now - BigInt(orders - at) * 60_000_000n),
    });
  }
  for (const [at, word] of WORDS.entries()) {
    ctx.db.product.insert({
      sku: `SKU-${100 + at}`,
      title: word,
      price: 9.5 + at * 12.25,
      stock: 3 + at * 4,
      tags: ["home", word.toLowerCase()],
    });
    const scheduled_at =
      at < 2 ? ScheduleAt.interval(1_000_000n) : ScheduleAt.time(now + BigInt(at) * 3_600_000_000n);
    ctx.db.restock.insert({
      scheduled_id: 0n,
      scheduled_at,
      sku: at === 1 ? "SKU-nothing" : `SKU-${100 + at}`,
    });
  }
  ctx.db.delivery.insert({
    id: 0n,
    order: 1n,
    to: { street: "Hauptstr. 1", city: "Berlin", zip: "10827" },
    courier: ctx.sender,
  });
  ctx.db.customer.insert({
    id: 0n,
    name: "<img src=x onerror=alert(1)>",
    email: '"><script>alert(1)</script>',
    city: "javascript:alert(1)",
    is_member: false,
    joined: ctx.timestamp,
  });
  console.info(`seeded ${customers} customers and ${orders} orders`);
});

export const fill_readings = db.reducer({ from: t.u32(), count: t.u32() }, (ctx, { from, count }) => {
  for (let at = from; at < from + count; at++)
    ctx.db.reading.insert({ id: BigInt(at), sensor: at % 100, value: (at * 37) % 1000 });
});

export const place_order = db.reducer(
  { customer: t.u64(), total_cents: t.i64(), note: t.option(t.string()) },
  (ctx, { customer, total_cents, note }) => {
    if (total_cents <= 0n) throw new SenderError("an order costs more than nothing");
    if (ctx.db.customer.id.find(customer) === null) throw new SenderError(`there is no customer ${customer}`);
    const made = ctx.db.order.insert({
      id: 0n,
      customer,
      total_cents,
      status: { tag: "open" },
      note,
      placed: ctx.timestamp,
    });
    ctx.db.audit.insert({ id: 0n, who: ctx.sender, what: `order ${made.id}` });
    ctx.db.ping.insert({ text: `order ${made.id}`, at: ctx.timestamp });
    console.info(`order ${made.id} of customer ${customer}: ${total_cents} cents`);
  },
);

export const ship_orders = db.reducer({ max: t.u32() }, (ctx, { max }) => {
  let left = max;
  for (const one of ctx.db.order.iter()) {
    if (one.status.tag !== "paid" || left-- === 0) continue;
    ctx.db.order.id.update({ ...one, status: { tag: "shipped" } });
  }
  console.debug(`shipped up to ${max}`);
});

export const complain = db.reducer({ text: t.string() }, (_, { text }) => {
  console.warn(text);
});

export const crash = db.reducer(() => {
  throw new TypeError("this reducer always fails");
});

export const restock_one = db.reducer({ onSchedule: restock }, { row: restock.rowType }, (ctx, { row }) => {
  const found = ctx.db.product.sku.find(row.sku);
  if (found === null) throw new SenderError(`there is no product ${row.sku}`);
  ctx.db.product.sku.update({ ...found, stock: found.stock + 1 });
});

export const quote = db.procedure(
  { sku: t.string(), pieces: t.u32() },
  t.object("Quote", { sku: t.string(), total: t.f64() }),
  (ctx, { sku, pieces }) =>
    ctx.withTx((tx) => {
      const found = tx.db.product.sku.find(sku);
      if (found === null) throw new SenderError(`there is no product ${sku}`);
      return { sku, total: found.price * pieces };
    }),
);

export const low_stock = db.anonymousView(
  { name: "low_stock", public: true },
  t.array(product.rowType),
  (ctx) => ctx.from.product.where((one) => one.stock.lt(20)),
);

export const hello = db.httpHandler((_, request) => new SyncResponse(`hello from ${request.method}`));
export const routes = db.httpRouter(new Router().get("/hello", hello).post("/hello", hello));
