export default defineNuxtConfig({
  compatibilityDate: '2026-01-01',
  srcDir: 'src/',
  css: ['~/style.css'],
  app: { head: { title: 'People', link: [{ rel: 'icon', href: 'data:,' }] } },
  devtools: { enabled: false },
  telemetry: false,
  // Vite would find these while the page is shown, and load it again.
  vite: { optimizeDeps: { include: ['lightcone', 'lightcone/vue'] } },
});
