// Gives tests the English words of all pages, which pages load before they are shown. Loaded by vitest before each test
// file (../vite.config.ts).
import { withWords } from './i18n/words';

await withWords(() => Promise.resolve())();
