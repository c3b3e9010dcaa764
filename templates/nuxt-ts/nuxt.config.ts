export default defineNuxtConfig({
  compatibilityDate: '2026-01-01',
  srcDir: 'src/',
  css: ['~/style.css'],
  app: { head: { title: 'People', link: [{ rel: 'icon', href: 'data:,' }] } },
  telemetry: false,
});
