// A list of snapshots with actions: roll back, create a volume, delete.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { may, type Session } from '../../api/session';
import { removeSnapshot, rollBack, type Snapshot, type Volume } from '../../api/storage';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { stateOf, whyOf } from '../../lib/state';
import { Confirm } from '../../parts/confirm';
import { ObjectList, type Column, type Listing } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { StateLabel } from '../../parts/state';
import { CreateVolume } from './create-volume';
import { Time } from '../../parts/time';

interface Props {
  session: Session;
  list?: Listing<Snapshot>;
  query?: Parameters<typeof ObjectList<Snapshot>>[0]['query'];
  volumes: Volume[];
  empty: ReactNode;
}

export function SnapshotList({ session, list, query, volumes, empty }: Props) {
  const { t, language } = useText();
  const client = useQueryClient();
  const [back, setBack] = useState<Snapshot | null>(null);
  const [cloning, setCloning] = useState<Snapshot | null>(null);
  const removal = useRemoval<Snapshot>({
    remove: removeSnapshot,
    title: (name) => t('snap.deleteTitle', { name }),
    help: t('snap.deleteHelp'),
  });
  const roll = useMutation({
    mutationFn: rollBack,
    onSuccess: () => (setBack(null), client.invalidateQueries({ queryKey: ['Volume', 'list'] })),
  });
  const volumeName = (s: Snapshot) => {
    const v = volumes.find((x) => x.meta.id === s.spec.volume);
    if (!v) return s.spec.volume;
    return v.spec.root ? t('snap.volumeRoot', { name: v.meta.name }) : v.meta.name;
  };
  const actions = (s: Snapshot) => {
    if (!may(session, 'member') || s.meta.deletedAt) return [];
    const ready = stateOf(s) === 'Ready';
    return [
      ready && { text: t('snap.rollback'), run: () => (roll.reset(), setBack(s)) },
      ready && { text: t('snap.clone'), run: () => setCloning(s) },
      { text: t('common.delete'), danger: true, run: () => removal.ask(s) },
    ];
  };
  const columns: Column<Snapshot>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (s) => s.meta.name },
    {
      id: 'state',
      sort: 'state',
      title: t('common.state'),
      value: (s) => stateOf(s),
      cell: (s) => <StateLabel state={stateOf(s)} note={whyOf(s)} />,
    },
    { id: 'of', sort: 'spec.volume', title: t('snap.of'), cell: volumeName },
    {
      id: 'size',
      sort: 'status.sizeBytes',
      title: t('vol.size'),
      value: (s) => s.status?.sizeBytes,
      cell: (s) => (s.status?.sizeBytes ? formatBytes(s.status.sizeBytes, language) : '–'),
    },
    {
      id: 'taken',
      sort: 'status.createdAt',
      title: t('snap.taken'),
      value: (s) => s.status?.createdAt,
      cell: (s) => <Time at={s.status?.createdAt} />,
    },
  ];
  return (
    <>
      <ObjectList
        label={t('snap.title')}
        columns={columns}
        name={list && 'snapshots'}
        list={list}
        query={query}
        actions={actions}
        bulk={list && may(session, 'member') ? [removal.bulk((s) => !s.meta.deletedAt)] : undefined}
        keyOf={(s) => s.meta.id ?? s.meta.name}
        empty={empty}
      />
      {back && (
        <Confirm
          title={t('snap.rollbackTitle', { volume: volumeName(back), name: back.meta.name })}
          help={t('snap.rollbackHelp')}
          action={t('snap.rollback')}
          danger
          busy={roll.isPending}
          error={roll.error}
          onConfirm={() => roll.mutate(back)}
          onClose={() => setBack(null)}
        />
      )}
      {cloning && (
        <CreateVolume
          project={cloning.meta.project}
          source={`snapshot:${cloning.meta.id}`}
          onClose={() => setCloning(null)}
        />
      )}
      {removal.dialog}
    </>
  );
}
