// Node 20 has no WebSocket of its own; newer versions, Bun and Deno do.
import { WebSocket } from 'undici';

globalThis.WebSocket ??= WebSocket as unknown as typeof globalThis.WebSocket;
