// An instance's CD drives: media are inserted and ejected.
import { Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Instance, Schemas } from '../../api/client';
import { useImages } from '../../api/queries';
import { change, instances } from '../../api/resource';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { changeAsCurl, quote } from '../../lib/shell';
import { isMedium } from '../../lib/source';
import { ErrorAlert } from '../../parts/error';
import { FormDialog } from '../../parts/form-dialog';
import { Rows } from '../../parts/rows';
import { Same } from '../../parts/same';
import { SelectField } from '../../parts/text-field';

const drives = [0, 1];

/** withMedium returns an instance with another medium in a drive; empty for none. The other drive keeps its own. */
export const withMedium = (i: Instance, drive: number, id: string): Instance => ({
  ...i,
  spec: {
    ...i.spec,
    media: drives
      .slice(0, Math.max(i.spec.media?.length ?? 0, drive + 1))
      .map((n) => (n === drive ? id : (i.spec.media?.[n] ?? ''))),
  },
});

/** setCommand returns the command that gives an instance its media. */
const setCommand = (i: Instance, name: (id: string) => string) =>
  [
    `basalt instance set ${quote(i.meta.name)}`,
    ...(i.spec.media ?? []).map((id) => `--cdrom ${id ? quote(name(id)) : '""'}`),
  ].join(' ');

interface InsertProps {
  instance: Instance;
  drive: number;
  media: Schemas['Image'][];
  onClose: () => void;
}

function Insert({ instance: i, drive, media, onClose }: InsertProps) {
  const { t } = useText();
  const [chosen, choose] = useState('');
  const id = chosen || media[0]?.meta.id || '';
  const next = withMedium(i, drive, id);
  const save = useChange(i, onClose);
  return (
    <FormDialog
      title={t('cd.insertTitle', { n: String(drive + 1) })}
      help={t(media.length > 0 ? 'cd.insertHelp' : 'cd.noMedia')}
      action={t('cd.insert')}
      busy={save.isPending}
      disabled={!id}
      error={save.error}
      schema="Instance"
      body={next}
      onSubmit={() => save.mutate({ drive, id })}
      onClose={onClose}
    >
      <SelectField
        id="cd-medium"
        label={t('cd.medium')}
        path="spec.media"
        value={id}
        onChange={choose}
        options={media.map((m) => [m.meta.id ?? '', m.meta.name])}
      />
      <Same
        cli={setCommand(next, (x) => media.find((m) => m.meta.id === x)?.meta.name ?? x)}
        curl={changeAsCurl(instances, i, next)}
      />
    </FormDialog>
  );
}

/** useChange changes the medium in a drive of the instance as it then is. */
function useChange(i: Instance, onSuccess: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ drive, id }: { drive: number; id: string }) =>
      change(instances, i.meta.id ?? '', (now) => withMedium(now, drive, id)),
    onSuccess: (now) => {
      client.setQueryData(['Instance', 'one', i.meta.id], now);
      onSuccess();
    },
  });
}

export function Media({ session, instance: i }: { session: Session; instance: Instance }) {
  const { t } = useText();
  const all = useImages(i.meta.project ?? '');
  const media = all.data?.items.filter((x) => isMedium(x) && !x.meta.deletedAt) ?? [];
  const [inserting, insert] = useState<number | null>(null);
  const ejection = useChange(i, () => undefined);
  const changeable = may(session, 'member') && !i.meta.deletedAt;
  const row = (drive: number): [string, React.ReactNode] => {
    const id = i.spec.media?.[drive] ?? '';
    const label = t('cd.drive', { n: String(drive + 1) });
    return [
      label,
      <div key={drive} className="basalt-actions">
        <span>{id ? (all.data?.items.find((x) => x.meta.id === id)?.meta.name ?? id) : t('cd.empty')}</span>
        {changeable && (
          <Button variant="link" isInline aria-label={`${t('cd.insert')}: ${label}`} onClick={() => insert(drive)}>
            {t('cd.insert')}
          </Button>
        )}
        {changeable && id && (
          <Button
            variant="link"
            isInline
            isDisabled={ejection.isPending}
            aria-label={`${t('cd.eject')}: ${label}`}
            onClick={() => ejection.mutate({ drive, id: '' })}
          >
            {t('cd.eject')}
          </Button>
        )}
      </div>,
    ];
  };
  const none = !i.spec.media?.length && i.spec.os !== 'windows';
  return (
    <Card>
      <CardTitle component="h2">{t('cd.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={all.error ?? ejection.error} onClose={ejection.reset} />
        {none && <p className="basalt-note">{t('cd.none')}</p>}
        <Rows rows={drives.map(row)} />
      </CardBody>
      {inserting !== null && <Insert instance={i} drive={inserting} media={media} onClose={() => insert(null)} />}
    </Card>
  );
}
