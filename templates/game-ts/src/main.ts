import { builder } from './connection';
import { tables } from './module_bindings';
import type { Player } from './module_bindings/types';

const WORLD = 1000;
const VIEW = 420;
const STEER_EVERY_MS = 50;

const find = <E extends HTMLElement>(selector: string) => document.querySelector<E>(selector)!;
const show = (role: 'status' | 'alert', text: string) => (find(`[role=${role}]`).textContent = text);
const canvas = find<HTMLCanvasElement>('canvas');
const form = find<HTMLFormElement>('form');
const pen = canvas.getContext('2d')!;

const connection = builder
  .withReconnect()
  .onConnect(() => show('status', 'Connected'))
  .onReconnect(() => show('status', 'Connected'))
  .onReconnecting((_ctx, { error }) => show('status', `Connection lost: ${error?.message}`))
  .onConnectError((_ctx, error) => show('status', `Cannot connect: ${error.message}`))
  .build();
connection
  .subscriptionBuilder()
  .onError(ctx => show('alert', ctx.event?.message ?? ''))
  .subscribe([tables.player, tables.food]);

const me = () => connection.identity && connection.db.player.identity.find(connection.identity);

form.addEventListener('submit', async event => {
  event.preventDefault();
  try {
    await connection.reducers.join({ name: find<HTMLInputElement>('input').value });
    show('alert', '');
  } catch (error) {
    show('alert', (error as Error).message);
  }
});

// Where to --------------------------------------------------------------------------------------------------------------

const keys = new Set<string>();
const pointer = { dx: 0, dy: 0 };
addEventListener('keydown', event => keys.add(event.key));
addEventListener('keyup', event => keys.delete(event.key));
addEventListener('blur', () => keys.clear());
canvas.addEventListener('pointermove', ({ clientX, clientY }) => {
  const reach = Math.min(innerWidth, innerHeight) / 4;
  pointer.dx = (clientX - innerWidth / 2) / reach;
  pointer.dy = (clientY - innerHeight / 2) / reach;
});

function direction() {
  const dx = Number(keys.has('ArrowRight')) - Number(keys.has('ArrowLeft'));
  const dy = Number(keys.has('ArrowDown')) - Number(keys.has('ArrowUp'));
  return dx || dy ? { dx, dy } : { ...pointer };
}

let said = { dx: 0, dy: 0 };
setInterval(() => {
  const now = direction();
  if (!me() || (now.dx === said.dx && now.dy === said.dy)) return;
  said = now;
  // What is wrong with the connection stands above.
  connection.reducers.steer(now).catch(() => {});
}, STEER_EVERY_MS);

// What there is ---------------------------------------------------------------------------------------------------------

/** Where players are drawn: they glide to the places that the database says 20 times a second. */
const drawn = new Map<string, { x: number; y: number; r: number }>();
const camera = { x: WORLD / 2, y: WORLD / 2 };
const glide = (from: number, to: number) => from + (to - from) * 0.25;

function placeOf(player: Player) {
  const key = player.identity.toHexString();
  const r = 3 * Math.sqrt(player.mass);
  const before = drawn.get(key) ?? { x: player.x, y: player.y, r };
  const now = { x: glide(before.x, player.x), y: glide(before.y, player.y), r: glide(before.r, r) };
  drawn.set(key, now);
  return now;
}

function disc(x: number, y: number, r: number, color: string) {
  pen.fillStyle = color;
  pen.beginPath();
  pen.arc(x, y, r, 0, 2 * Math.PI);
  pen.fill();
}

const colorOf = (player: Player) => `hsl(${Number(`0x${player.identity.toHexString().slice(-4)}`) % 360} 70% 60%)`;

function draw() {
  const [width, height] = [innerWidth * devicePixelRatio, innerHeight * devicePixelRatio];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  // Small ones before large ones, which cover them.
  const players = [...connection.db.player.iter()].sort((a, b) => a.mass - b.mass);
  const places = players.map(player => ({ player, ...placeOf(player) }));
  const own = me();
  const here = places.find(({ player }) => own?.identity.isEqual(player.identity));
  if (here) [camera.x, camera.y] = [here.x, here.y];
  const scale = Math.min(width, height) / VIEW;
  pen.setTransform(scale, 0, 0, scale, width / 2 - camera.x * scale, height / 2 - camera.y * scale);
  pen.clearRect(camera.x - 9 * VIEW, camera.y - 9 * VIEW, 18 * VIEW, 18 * VIEW);
  pen.strokeStyle = '#33405a';
  pen.strokeRect(0, 0, WORLD, WORLD);
  for (const food of connection.db.food.iter()) disc(food.x, food.y, 3, '#8fd694');
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  for (const { player, x, y, r } of places) {
    disc(x, y, r, colorOf(player));
    pen.fillStyle = '#0e1420';
    pen.font = `${Math.max(6, r / 2)}px system-ui`;
    pen.fillText(player.name, x, y);
  }
  requestAnimationFrame(draw);
}
requestAnimationFrame(draw);

function list() {
  const players = [...connection.db.player.iter()].sort((a, b) => b.mass - a.mass);
  const items = players.slice(0, 10).map(player => {
    const item = document.createElement('li');
    item.textContent = `${player.name} ${Math.round(player.mass)}`;
    return item;
  });
  find('ol').replaceChildren(...items);
  form.hidden = Boolean(me());
  for (const key of drawn.keys()) if (!players.some(({ identity }) => identity.toHexString() === key)) drawn.delete(key);
}
setInterval(list, 200);
