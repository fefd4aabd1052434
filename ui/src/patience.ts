// How long tests wait for what a page will show: machines of CI are slow. Read
// by vitest before each file of tests (../vite.config.ts).
import { configure } from '@testing-library/dom';

configure({ asyncUtilTimeout: 60_000 });
