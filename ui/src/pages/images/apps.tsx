import { Alert, Button } from '@patternfly/react-core';
import { CubeIcon } from '@patternfly/react-icons';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useImageList } from '../../api/cluster';
import { useApps } from '../../api/queries';
import { may, type Session } from '../../api/session';
import { AddImage } from '../../forms/image';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { Copyable } from '../../parts/copyable';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { ToneLabel } from '../../parts/tone';
import { AppForm } from './app-form';

type App = Schemas['App'];
type Image = Schemas['Image'];

/** ImageOf shows whether the image of an app exists, and imports it. */
function ImageOf({ app, images, get }: { app: App; images: Image[]; get?: (a: App) => void }) {
  const { t } = useText();
  const image = images.find((i) => i.meta.name === app.spec.image && i.spec.public);
  const ready = image?.status?.phase === 'Ready';
  return (
    <div>
      {app.spec.image}{' '}
      {ready ? (
        <ToneLabel tone="good" text={t('img.Ready')} />
      ) : image ? (
        <ToneLabel tone="busy" text={t(`img.${image.status?.phase ?? 'Pending'}`)} />
      ) : (
        <ToneLabel tone="warning" text={t('cat.noImage')} />
      )}
      {!image && get && app.spec.imageURL && (
        <>
          {' '}
          <Button
            variant="link"
            isInline
            aria-label={`${t('cat.getImage')}: ${app.spec.image}`}
            onClick={() => get(app)}
          >
            {t('cat.getImage')}
          </Button>
        </>
      )}
    </div>
  );
}

export function Apps({ session }: { session: Session }) {
  const { t, language } = useText();
  const client = useQueryClient();
  const query = useApps();
  const images = useImageList({ limit: 1000 });
  const [editing, edit] = useState<App | 'new' | null>(null);
  const [getting, get] = useState<App | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ['App', 'list'] });
  const removal = useRemoval<App>({
    remove: (a) => ok(api.DELETE('/v1/apps/{id}', { params: { path: { id: a.meta.id ?? '' } } })),
    title: (name) => t('one.deleteTitle', { name }),
    help: t('cat.deleteHelp'),
  });
  const operator = may(session, 'operator');
  const size = (n: number | undefined) => (n ? formatBytes(n, language) : '');
  const columns: Column<App>[] = [
    {
      id: 'name',
      title: t('common.name'),
      cell: (a) => (
        <>
          {a.spec.displayName}
          <br />
          <span className="basalt-note">
            {[a.meta.name, a.spec.version, a.spec.category].filter(Boolean).join(' · ')}
          </span>
        </>
      ),
    },
    { id: 'what', title: t('cat.what'), cell: (a) => a.spec.description || '–' },
    {
      id: 'image',
      title: t('cat.image'),
      cell: (a) => <ImageOf app={a} images={images.data?.items ?? []} get={operator ? get : undefined} />,
    },
    {
      id: 'needs',
      title: t('cat.needs'),
      cell: ({ spec: { needs: n } }) =>
        [
          n?.vramBytes && t('inst.vram', { size: size(n.vramBytes) }),
          n?.memoryBytes && t('cat.memory', { size: size(n.memoryBytes) }),
          n?.rootBytes && t('cat.disk', { size: size(n.rootBytes) }),
        ]
          .filter(Boolean)
          .join(', ') || '–',
    },
    ...(operator
      ? [
          {
            id: 'actions',
            control: true,
            title: t('common.actions'),
            cell: (a: App) => (
              <div className="basalt-actions">
                <Button
                  variant="link"
                  isInline
                  aria-label={`${t('op.change')}: ${a.meta.name}`}
                  onClick={() => edit(a)}
                >
                  {t('op.change')}
                </Button>
                <Button
                  variant="link"
                  isInline
                  isDanger
                  aria-label={`${t('common.delete')}: ${a.meta.name}`}
                  onClick={() => removal.ask(a)}
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
      {operator && (
        <div>
          <Button onClick={() => edit('new')}>{t('cat.create')}</Button>
        </div>
      )}
      <ObjectList
        name="apps"
        label={t('cat.listTitle')}
        columns={columns}
        query={query}
        bulk={operator ? [removal.bulk()] : undefined}
        keyOf={(a) => a.meta.id ?? a.meta.name}
        empty={<Empty title={t('cat.empty')} help={t('cat.emptyHelp')} icon={CubeIcon} />}
      />
      {operator && (
        <Alert component="h2" variant="info" isInline title={t('cat.catalogue')}>
          <div className="basalt-stack">
            <p>{t('cat.catalogueHelp')}</p>
            <Copyable label={t('op.cli')} text="basalt app install" />
          </div>
        </Alert>
      )}
      {editing && (
        <AppForm
          app={editing === 'new' ? undefined : editing}
          onDone={() => (edit(null), void again())}
          onClose={() => edit(null)}
        />
      )}
      {getting && (
        <AddImage
          session={session}
          everybody
          name={getting.spec.image}
          url={getting.spec.imageURL}
          onClose={() => get(null)}
        />
      )}
      {removal.dialog}
    </div>
  );
}
