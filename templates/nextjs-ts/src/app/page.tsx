'use client';

// On the server the page has no rows yet; the browser connects, and shows them as they change.
export { App as default } from '../People';
