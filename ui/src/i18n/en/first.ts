// The words of the sign-in page, the frame and the dashboard, a file an area.
import { start } from './start';
import { shell } from './shell';
import { common } from './common';
import { session } from './session';
import { dashboard } from './dashboard';
import { setup } from './setup';
import { form } from './form';
import { cause } from './cause';

export const first = {
  ...start,
  ...shell,
  ...common,
  ...session,
  ...dashboard,
  ...setup,
  ...form,
  ...cause,
} as const;
