// Actions on instances in lists: on one through its row's menu, on all selected ones with one confirmation.
import { useMemo } from 'react';
import { api, ok, type Instance } from '../api/client';
import { may, type Session } from '../api/session';
import { useText } from '../i18n';
import { phaseOf } from '../lib/phase';
import type { Bulk } from './list-bulk';
import { useRowActions } from './row-actions';

const at = (i: Instance) => ({ params: { path: { id: i.meta.id ?? '' } } });
const start = (i: Instance) => ok(api.POST('/v1/instances/{id}/start', at(i)));
const stop = (i: Instance) => ok(api.POST('/v1/instances/{id}/stop', at(i)));
const remove = (i: Instance) => ok(api.DELETE('/v1/instances/{id}', at(i)));

const stays = (i: Instance) => phaseOf(i) !== 'Deleting';

export function useInstanceActions(session: Session) {
  const { t } = useText();
  const member = may(session, 'member');
  const bulk = useMemo(
    (): Bulk<Instance>[] =>
      member
        ? [
            {
              id: 'start',
              text: t('one.start'),
              help: t('one.startHelp'),
              applies: (i) => stays(i) && i.spec.power === 'Stopped',
              run: start,
            },
            {
              id: 'stop',
              text: t('one.stop'),
              help: t('one.stopHelp'),
              applies: (i) => stays(i) && i.spec.power !== 'Stopped',
              run: stop,
            },
            {
              id: 'delete',
              text: t('common.delete'),
              help: t('one.deleteHelp'),
              danger: true,
              applies: stays,
              run: remove,
            },
          ]
        : [],
    [member, t],
  );
  return { bulk, ...useRowActions(bulk) };
}
