// A list of volumes with actions, on their own page and on an instance's.
import { Label } from '@patternfly/react-core';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { useInstances } from '../../api/queries';
import { may, type Session } from '../../api/session';
import { mostChoices, removeVolume, type Volume } from '../../api/storage';
import { Move } from '../../forms/move';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { whyOf } from '../../lib/state';
import { migratable, placeOf, volumeState } from '../../lib/volume';
import { ObjectList, type Column, type Listing } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { StateLabel } from '../../parts/state';
import { useProject } from '../../parts/project';
import { VolumeDialog, type VolumeAction } from './volume-dialogs';

interface Props {
  session: Session;
  label: string;
  /** All volumes, paged by the server; or else those of query. */
  list?: Listing<Volume>;
  query?: Parameters<typeof ObjectList<Volume>>[0]['query'];
  /** The list belongs to one instance, which rows then do not name. */
  ofInstance?: boolean;
  empty: ReactNode;
}

export function VolumeList({ session, label, list, query, ofInstance, empty }: Props) {
  const { t, language } = useText();
  const { project, projects } = useProject();
  const instances = useInstances({ project, limit: mostChoices });
  const [doing, setDoing] = useState<{ action: VolumeAction; volume: Volume } | null>(null);
  const [moving, move] = useState<Volume | null>(null);
  const removal = useRemoval<Volume>({
    remove: removeVolume,
    title: (name) => t('vol.deleteTitle', { name }),
    help: t('vol.deleteHelp'),
  });
  const instanceName = (id: string) => instances.data?.items.find((i) => i.meta.id === id)?.meta.name ?? id;
  const where = (v: Volume) => {
    const { instance, doing } = placeOf(v);
    if (!instance) return t('vol.free');
    return (
      <>
        <Link href={`/instances/${instance}`}>{instanceName(instance)}</Link>
        {doing && <span className="basalt-note">, {t(`vol.${doing}`)}</span>}
      </>
    );
  };
  const actions = (volume: Volume) => {
    if (!may(session, 'member') || volume.meta.deletedAt) return [];
    const act = (action: VolumeAction) => ({
      text: t(action === 'snapshot' ? 'snap.take' : `vol.${action}`),
      run: () => setDoing({ action, volume }),
    });
    const { root, instance } = volume.spec;
    return [
      !root && (instance ? act('detach') : act('attach')),
      act('snapshot'),
      act('grow'),
      act('limits'),
      may(session, 'operator') && migratable(volume) && { text: t('all.move'), run: () => move(volume) },
      !root && { text: t('common.delete'), danger: true, run: () => removal.ask(volume) },
    ];
  };
  const columns: Column<Volume>[] = [
    {
      id: 'name',
      sort: 'name',
      title: t('common.name'),
      cell: (v) => (
        <span className="basalt-labels">
          {v.meta.name}
          {v.spec.root && <Label isCompact>{t('vol.root')}</Label>}
          {v.spec.encrypted && (
            <Label isCompact color="purple">
              {t('vol.encrypted')}
            </Label>
          )}
          {v.spec.qos && (
            <Label isCompact color="teal">
              {t('vol.limited')}
            </Label>
          )}
        </span>
      ),
    },
    {
      id: 'state',
      sort: 'state',
      title: t('common.state'),
      value: (v) => volumeState(v),
      cell: (v) => <StateLabel state={volumeState(v)} note={whyOf(v)} />,
    },
    {
      id: 'size',
      sort: 'spec.sizeBytes',
      title: t('vol.size'),
      value: (v) => v.status?.sizeBytes || v.spec.sizeBytes,
      cell: (v) => (
        <>
          {formatBytes(v.status?.sizeBytes || v.spec.sizeBytes || 0, language)}
          {v.status?.allocatedBytes !== undefined && (
            <div className="basalt-note">{t('vol.used', { size: formatBytes(v.status.allocatedBytes, language) })}</div>
          )}
        </>
      ),
    },
    ...(ofInstance
      ? []
      : [
          {
            id: 'attached',
            sort: 'spec.instance',
            title: t('vol.attached'),
            value: (v: Volume) => (v.spec.instance ? instanceName(v.spec.instance) : undefined),
            cell: where,
          },
        ]),
    ...(ofInstance || project
      ? []
      : [
          {
            id: 'project',
            sort: 'project',
            title: t('common.project'),
            cell: (v: Volume) => projects.find((p) => p.meta.id === v.meta.project)?.meta.name ?? '',
          },
        ]),
  ];
  return (
    <>
      <ObjectList
        label={label}
        columns={columns}
        name={ofInstance ? undefined : 'volumes'}
        list={list}
        query={query}
        actions={actions}
        bulk={list && may(session, 'member') ? [removal.bulk((v) => !v.spec.root && !v.meta.deletedAt)] : undefined}
        keyOf={(v) => v.meta.id ?? v.meta.name}
        empty={empty}
      />
      {doing && <VolumeDialog {...doing} onClose={() => setDoing(null)} />}
      {moving && <Move of={moving} onClose={() => move(null)} />}
      {removal.dialog}
    </>
  );
}
