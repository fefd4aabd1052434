import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2022',
    // dist holds a committed .gitignore; scripts/build.mjs empties the rest.
    emptyOutDir: false,
    // The pages' policy allows no data: addresses.
    assetsInlineLimit: 0,
    sourcemap: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    // `npm run dev` beside a running basaltd.
    proxy: { '/portal': { target: process.env.BASALT_SERVER ?? 'http://127.0.0.1:7480', changeOrigin: false } },
  },
  test: {
    css: false,
    // Files share a worker and what it has read: to start one for each took most of
    // the time, and vitest gives each 60 s to start, too little for a busy machine.
    isolate: false,
    // What a busy machine may need; nothing is measured with it.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    setupFiles: ['src/patience.ts', 'src/words.ts'],
    // PatternFly's ES modules import CSS, which only Vite understands.
    server: { deps: { inline: [/@patternfly/] } },
  },
});
