// How long tests wait for what a page will show, as CI machines are slow. Loaded by vitest before each test file
// (../vite.config.ts).
import { configure } from '@testing-library/dom';

configure({ asyncUtilTimeout: 60_000 });
