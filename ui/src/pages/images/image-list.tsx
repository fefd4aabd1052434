import { Button } from '@patternfly/react-core';
import { ImagesIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { change, images } from '../../api/resource';
import { may, type Session } from '../../api/session';
import { AddImage } from '../../forms/image';
import { EditImage } from '../../forms/image-edit';
import { useText } from '../../i18n';
import { told } from '../../lib/cause';
import { formatBytes, formatPercent } from '../../lib/format';
import { Confirm } from '../../parts/confirm';
import { ErrorAlert } from '../../parts/error';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { Note } from '../../parts/told';
import { ToneLabel, type Tone } from '../../parts/tone';
import { useProject } from '../../parts/project';
import { Time } from '../../parts/time';
import { collections } from '../../api/collection';

type Image = Schemas['Image'];

const tones: Record<string, Tone> = { Ready: 'good', Failed: 'bad', Importing: 'busy', Pending: 'busy' };

function State({ image: { meta, status: s } }: { image: Image }) {
  const { t, language } = useText();
  const phase = meta.deletedAt ? 'Deleting' : s?.phase || 'Pending';
  const done =
    phase === 'Importing' && s?.sizeBytes ? formatPercent((100 * (s.progressBytes ?? 0)) / s.sizeBytes, language) : '';
  return (
    <div>
      <ToneLabel tone={tones[phase] ?? 'busy'} text={t(`img.${phase}`)} />{' '}
      {s?.lastError ? <Note of={told(s.lastError, s.cause)} /> : <span className="basalt-note">{done}</span>}
    </div>
  );
}

const removeImage = (i: Image) => ok(api.DELETE('/v1/images/{id}', { params: { path: { id: i.meta.id ?? '' } } }));

export function ImageList({ session }: { session: Session }) {
  const { t, language } = useText();
  const client = useQueryClient();
  const { projects } = useProject();
  const [adding, setAdding] = useState(false);
  const [editing, edit] = useState<Image | null>(null);
  const [going, remove] = useState<Image | null>(null);
  const list = useListing(collections.images);
  const again = () => client.invalidateQueries({ queryKey: ['Image', 'list'] });
  const removal = useMutation({
    mutationFn: removeImage,
    onSuccess: () => (remove(null), again()),
  });
  const publish = useMutation({
    mutationFn: (i: Image) =>
      change(images, i.meta.id ?? '', (now) => ({ ...now, spec: { ...now.spec, public: !i.spec.public } })),
    onSuccess: again,
  });
  const operator = may(session, 'operator');
  const mine = (i: Image) => operator || (may(session, 'member') && projects.some((p) => p.meta.id === i.meta.project));
  const add = may(session, 'member') && (operator || projects.length > 0) && (
    <Button onClick={() => setAdding(true)}>{t('img.add')}</Button>
  );
  const columns: Column<Image>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (i) => i.meta.name },
    {
      id: 'state',
      sort: 'state',
      title: t('common.state'),
      value: (i) => (i.meta.deletedAt ? 'Deleting' : i.status?.phase || 'Pending'),
      cell: (i) => <State image={i} />,
    },
    {
      id: 'size',
      sort: 'status.sizeBytes',
      title: t('img.size'),
      value: (i) => i.status?.sizeBytes,
      cell: ({ spec, status: s }) =>
        s?.sizeBytes
          ? t('img.sizes', {
              file: formatBytes(s.sizeBytes, language),
              disk: formatBytes(s.virtualBytes ?? 0, language),
              format: spec.format,
            })
          : spec.format,
    },
    {
      id: 'who',
      sort: 'spec.public',
      title: t('img.who'),
      cell: (i) =>
        i.spec.public
          ? t('img.public')
          : (projects.find((p) => p.meta.id === i.meta.project)?.meta.name ?? i.meta.project ?? '–'),
    },
    {
      id: 'created',
      sort: 'createdAt',
      title: t('common.created'),
      value: (i) => i.meta.createdAt,
      cell: (i) => <Time at={i.meta.createdAt} />,
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (i) =>
        mine(i) && !i.meta.deletedAt ? (
          <div className="basalt-actions">
            {operator && i.meta.project && (
              <Button
                variant="link"
                isInline
                isDisabled={publish.isPending}
                aria-label={`${t(i.spec.public ? 'img.makePrivate' : 'img.makePublic')}: ${i.meta.name}`}
                onClick={() => publish.mutate(i)}
              >
                {t(i.spec.public ? 'img.makePrivate' : 'img.makePublic')}
              </Button>
            )}
            <Button variant="link" isInline aria-label={`${t('op.change')}: ${i.meta.name}`} onClick={() => edit(i)}>
              {t('op.change')}
            </Button>
            <Button
              variant="link"
              isInline
              isDanger
              aria-label={`${t('common.delete')}: ${i.meta.name}`}
              onClick={() => (removal.reset(), remove(i))}
            >
              {t('common.delete')}
            </Button>
          </div>
        ) : (
          '–'
        ),
    },
  ];
  return (
    <div className="basalt-stack">
      {add && <div>{add}</div>}
      <ErrorAlert error={publish.error} onClose={publish.reset} />
      <ObjectList
        name="images"
        label={t('img.title')}
        columns={columns}
        list={list}
        bulk={
          add
            ? [
                {
                  id: 'delete',
                  text: t('common.delete'),
                  help: t('img.deleteHelp'),
                  danger: true,
                  applies: (i) => mine(i) && !i.meta.deletedAt,
                  run: removeImage,
                },
              ]
            : undefined
        }
        keyOf={(i) => i.meta.id ?? i.meta.name}
        empty={<Empty title={t('img.empty')} help={t('img.emptyHelp')} icon={ImagesIcon} />}
      />
      {adding && <AddImage session={session} onClose={() => setAdding(false)} />}
      {editing && <EditImage image={editing} onClose={() => edit(null)} />}
      {going && (
        <Confirm
          title={t('one.deleteTitle', { name: going.meta.name })}
          help={t('img.deleteHelp')}
          action={t('common.delete')}
          danger
          name={going.meta.name}
          busy={removal.isPending}
          error={removal.error}
          onConfirm={() => removal.mutate(going)}
          onClose={() => remove(null)}
        />
      )}
    </div>
  );
}
