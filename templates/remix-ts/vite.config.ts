import { reactRouter } from '@react-router/dev/vite';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [reactRouter()],
  // Vite does not see that the routes import these, and would load the page again when it does.
  optimizeDeps: { include: ['lightcone', 'lightcone/react'] },
});
