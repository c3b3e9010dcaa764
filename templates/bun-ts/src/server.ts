// Bun bundles the page, and brings it up to date while you edit.
import page from '../index.html';

const server = Bun.serve({ port: process.env.PORT ?? 8000, routes: { '/': page }, development: true });
console.log(`The page is at ${server.url}`);
