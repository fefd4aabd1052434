// The words of the first pages, as in English.
import type { first as en } from '../en/first';
import { start } from './start';
import { shell } from './shell';
import { common } from './common';
import { session } from './session';
import { dashboard } from './dashboard';
import { setup } from './setup';
import { form } from './form';
import { cause } from './cause';

export const first: Record<keyof typeof en, string> = {
  ...start,
  ...shell,
  ...common,
  ...session,
  ...dashboard,
  ...setup,
  ...form,
  ...cause,
};
