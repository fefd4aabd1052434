// Snapshots as rows: roll back, make a volume of it, delete.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { may, type Session } from '../../api/session';
import { removeSnapshot, rollBack, type Snapshot, type Volume } from '../../api/storage';
import { useText } from '../../i18n';
import { formatBytes, formatTime } from '../../lib/format';
import { stateOf, whyOf } from '../../lib/state';
import { Actions } from '../../parts/actions';
import { Confirm } from '../../parts/confirm';
import { ObjectList, type Column } from '../../parts/list';
import type { Pages } from '../../parts/list-state';
import { useRemoval } from '../../parts/removal';
import { StateLabel } from '../../parts/state';
import { CreateVolume } from './create-volume';

interface Props {
  session: Session;
  query: Parameters<typeof ObjectList<Snapshot>>[0]['query'];
  volumes: Volume[];
  pages?: Pages;
  empty: ReactNode;
}

export function SnapshotList({ session, query, volumes, pages, empty }: Props) {
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
    { title: t('common.name'), cell: (s) => s.meta.name },
    { title: t('common.state'), cell: (s) => <StateLabel state={stateOf(s)} note={whyOf(s)} /> },
    { title: t('snap.of'), cell: volumeName },
    { title: t('vol.size'), cell: (s) => (s.status?.sizeBytes ? formatBytes(s.status.sizeBytes, language) : '–') },
    { title: t('snap.taken'), cell: (s) => formatTime(s.status?.createdAt, language) || '–' },
    { title: t('common.actions'), cell: (s) => <Actions of={s.meta.name} actions={actions(s)} /> },
  ];
  return (
    <>
      <ObjectList
        label={t('snap.title')}
        columns={columns}
        query={query}
        keyOf={(s) => s.meta.id ?? s.meta.name}
        pages={pages}
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
