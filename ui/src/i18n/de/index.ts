import type { Words } from '../en';
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

export const de: Words = {
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
};
