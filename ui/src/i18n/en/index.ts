// The portal's words, a file an area. Keys are by place; {name} is filled in.
// Other languages have the same keys, which the compiler checks.
import { shell } from './shell';
import { common } from './common';
import { session } from './session';
import { dashboard } from './dashboard';
import { instances } from './instances';
import { create } from './create';
import { machines } from './machines';
import { money } from './money';
import { people } from './people';
import { catalogue } from './catalogue';
import { operator } from './operator';
import { storage } from './storage';

export const en = {
  ...shell,
  ...common,
  ...session,
  ...dashboard,
  ...instances,
  ...create,
  ...machines,
  ...money,
  ...people,
  ...catalogue,
  ...operator,
  ...storage,
} as const;

export type Key = keyof typeof en;
export type Words = Record<Key, string>;
