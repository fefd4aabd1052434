// The catalogue's apps with their images, and images of the operator's own.
import { Button, Label } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { useApps } from '../../api/queries';
import type { Session } from '../../api/session';
import { AddImage, useImportImage } from '../../forms/image';
import { useText } from '../../i18n';
import { told } from '../../lib/cause';
import { formatBytes } from '../../lib/format';
import { ErrorAlert } from '../../parts/error';
import { ObjectList, type Column } from '../../parts/list';
import { Note } from '../../parts/told';

type Image = Schemas['Image'];

interface Wanted {
  name: string;
  url: string;
  apps: string[];
  image?: Image;
}

/** wanted returns the images that apps define a source for, and the other existing ones. */
export function wanted(apps: Schemas['App'][], images: Image[]): Wanted[] {
  const out = new Map<string, Wanted>();
  for (const { spec } of apps) {
    const w = out.get(spec.image) ?? { name: spec.image, url: '', apps: [] };
    out.set(spec.image, { ...w, url: w.url || spec.imageURL || '', apps: [...w.apps, spec.displayName] });
  }
  for (const i of images)
    out.set(i.meta.name, {
      ...(out.get(i.meta.name) ?? { name: i.meta.name, url: i.spec.url ?? '', apps: [] }),
      image: i,
    });
  return [...out.values()];
}

function State({ image: i }: { image?: Image }) {
  const { t, language } = useText();
  if (!i) return <Label color="grey">{t('wizard.imageMissing')}</Label>;
  const { phase, lastError, cause, progressBytes } = i.status ?? {};
  if (phase === 'Ready')
    return (
      <Label color="green" icon={<CheckCircleIcon />}>
        {t('wizard.imageReady')}
      </Label>
    );
  if (phase === 'Failed')
    return (
      <div>
        <Label color="red" icon={<ExclamationCircleIcon />}>
          {t('img.Failed')}
        </Label>{' '}
        <Note of={told(lastError, cause)} />
      </div>
    );
  return (
    <div>
      <Label color="blue" icon={<InProgressIcon />}>
        {t('wizard.importing', { name: i.meta.name })}
      </Label>{' '}
      {progressBytes ? formatBytes(progressBytes, language) : ''} <Note of={told(lastError, cause)} />
    </div>
  );
}

export function ImagesStep({ session, images }: { session: Session; images: Image[] }) {
  const { t } = useText();
  const [adding, setAdding] = useState(false);
  const apps = useApps();
  const bring = useImportImage();
  const items = wanted(apps.data?.items ?? [], images);
  const columns: Column<Wanted>[] = [
    {
      id: 'name',
      title: t('common.name'),
      cell: (w) => (
        <div>
          {w.name}
          {w.apps.length > 0 && (
            <div className="basalt-note">{t('wizard.imagesApps', { apps: w.apps.join(', ') })}</div>
          )}
        </div>
      ),
    },
    { id: 'state', title: t('common.state'), cell: (w) => <State image={w.image} /> },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (w) =>
        !w.image && w.url ? (
          <Button
            variant="secondary"
            size="sm"
            aria-label={t('wizard.importOf', { name: w.name })}
            isLoading={bring.isPending && bring.variables.name === w.name}
            onClick={() => bring.mutate({ name: w.name, url: w.url })}
          >
            {t('wizard.import')}
          </Button>
        ) : (
          '–'
        ),
    },
  ];
  return (
    <>
      <ErrorAlert error={bring.error} onClose={bring.reset} />
      <ObjectList
        label={t('setup.images')}
        columns={columns}
        query={{ data: { items }, error: apps.error, isPending: apps.isPending, refetch: apps.refetch }}
        keyOf={(w) => w.name}
        empty={<p className="basalt-note">{t('wizard.nothing')}</p>}
      />
      <div>
        <Button variant="secondary" onClick={() => setAdding(true)}>
          {t('img.add')}
        </Button>
      </div>
      {adding && <AddImage session={session} everybody onClose={() => setAdding(false)} />}
    </>
  );
}
