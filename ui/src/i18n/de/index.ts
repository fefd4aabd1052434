import type { Words } from '../en';
import { shell } from './shell';
import { common } from './common';
import { session } from './session';
import { dashboard } from './dashboard';
import { instances } from './instances';
import { create } from './create';
import { consoles } from './console';
import { machines } from './machines';
import { money } from './money';
import { people } from './people';

export const de: Words = {
  ...shell,
  ...common,
  ...session,
  ...dashboard,
  ...instances,
  ...create,
  ...consoles,
  ...machines,
  ...money,
  ...people,
};
