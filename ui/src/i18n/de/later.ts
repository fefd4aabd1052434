// The words of all other pages, as in English.
import type { later as en } from '../en/later';
import { instances } from './instances';
import { create } from './create';
import { consoles } from './console';
import { machines } from './machines';
import { money } from './money';
import { people } from './people';
import { access } from './access';
import { catalogue } from './catalogue';
import { operator } from './operator';
import { alerts } from './alerts';
import { storage } from './storage';
import { customers } from './customers';
import { prices } from './prices';
import { revenue } from './revenue';
import { branding } from './branding';
import { mail } from './mail';
import { pay } from './pay';
import { vouchers } from './vouchers';
import { refunds } from './refunds';
import { groups } from './groups';
import { providers } from './providers';
import { support } from './support';
import { virtualMachines } from './virtual-machines';
import { signup } from './signup';
import { volumes } from './volumes';
import { network } from './network';
import { find } from './find';
import { list } from './list';
import { tasks } from './tasks';
import { conflict } from './conflict';
import { charts } from './charts';
import { tenant } from './tenant';
import { certificates } from './certificates';
import { wizard } from './wizard';

export const later: Record<keyof typeof en, string> = {
  ...instances,
  ...create,
  ...consoles,
  ...machines,
  ...money,
  ...people,
  ...access,
  ...catalogue,
  ...operator,
  ...alerts,
  ...storage,
  ...customers,
  ...prices,
  ...revenue,
  ...branding,
  ...mail,
  ...pay,
  ...vouchers,
  ...refunds,
  ...groups,
  ...providers,
  ...support,
  ...virtualMachines,
  ...signup,
  ...volumes,
  ...network,
  ...find,
  ...list,
  ...tasks,
  ...conflict,
  ...charts,
  ...tenant,
  ...certificates,
  ...wizard,
};
