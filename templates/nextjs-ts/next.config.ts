import type { NextConfig } from 'next';

const config: NextConfig = {
  // The module in spacetimedb/ has a package.json of its own; this directory is the root nevertheless.
  turbopack: { root: import.meta.dirname },
};

export default config;
