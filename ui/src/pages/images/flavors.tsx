import { Button } from '@patternfly/react-core';
import { CubesIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useFlavors } from '../../api/queries';
import { may, type Session } from '../../api/session';
import { FlavorForm } from '../../forms/flavor';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';

type Flavor = Schemas['Flavor'];

export function Flavors({ session }: { session: Session }) {
  const { t, language } = useText();
  const query = useFlavors();
  const [editing, edit] = useState<Flavor | 'new' | null>(null);
  const removal = useRemoval<Flavor>({
    remove: (f) => ok(api.DELETE('/v1/flavors/{id}', { params: { path: { id: f.meta.id ?? '' } } })),
    title: (name) => t('one.deleteTitle', { name }),
    help: t('flv.deleteHelp'),
  });
  const operator = may(session, 'operator');
  const create = operator && <Button onClick={() => edit('new')}>{t('flv.create')}</Button>;
  const columns: Column<Flavor>[] = [
    { id: 'name', title: t('common.name'), cell: (f) => f.meta.name },
    { id: 'vcpus', title: t('flv.vcpus'), value: (f) => f.spec.vcpus, cell: (f) => f.spec.vcpus },
    {
      id: 'memory',
      title: t('one.memory'),
      value: (f) => f.spec.memoryBytes,
      cell: (f) => formatBytes(f.spec.memoryBytes, language),
    },
    {
      id: 'rootDisk',
      title: t('one.rootDisk'),
      value: (f) => f.spec.rootBytes,
      cell: (f) => (f.spec.rootBytes ? formatBytes(f.spec.rootBytes, language) : t('flv.asImage')),
    },
    ...(operator
      ? [
          {
            id: 'actions',
            control: true,
            title: t('common.actions'),
            cell: (f: Flavor) => (
              <div className="basalt-actions">
                <Button
                  variant="link"
                  isInline
                  aria-label={`${t('op.change')}: ${f.meta.name}`}
                  onClick={() => edit(f)}
                >
                  {t('op.change')}
                </Button>
                <Button
                  variant="link"
                  isInline
                  isDanger
                  aria-label={`${t('common.delete')}: ${f.meta.name}`}
                  onClick={() => removal.ask(f)}
                >
                  {t('common.delete')}
                </Button>
              </div>
            ),
          },
        ]
      : []),
  ];
  return (
    <div className="basalt-stack">
      {create && <div>{create}</div>}
      <ObjectList
        name="flavors"
        label={t('flv.title')}
        columns={columns}
        query={query}
        bulk={operator ? [removal.bulk()] : undefined}
        keyOf={(f) => f.meta.id ?? f.meta.name}
        empty={<Empty title={t('flv.empty')} help={t('flv.emptyHelp')} icon={CubesIcon} />}
      />
      {editing && <FlavorForm flavor={editing === 'new' ? undefined : editing} onClose={() => edit(null)} />}
      {removal.dialog}
    </div>
  );
}
