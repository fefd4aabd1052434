// Gives tests the words of all pages, which pages load before they are shown. Loaded by vitest before each test file
// (../vite.config.ts).
import { addLater } from './i18n/en';
import { later } from './i18n/en/later';

addLater(later);
