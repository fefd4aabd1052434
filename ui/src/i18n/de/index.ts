// All words, for tests: pages load them in two parts (../words.ts).
import { first } from './first';
import { later } from './later';

export const de = { ...first, ...later };
