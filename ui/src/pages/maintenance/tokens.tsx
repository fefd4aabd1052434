import { Alert, Button } from '@patternfly/react-core';
import { KeyIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useJoinTokens } from '../../api/cluster';
import { useText } from '../../i18n';
import { formatTime } from '../../lib/format';
import { Copyable } from '../../parts/copyable';
import { ErrorAlert } from '../../parts/error';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { Time } from '../../parts/time';

type Token = Schemas['JoinToken'];

/** Tokens lists join tokens, each of which admits one new node once. */
export function Tokens() {
  const { t, language } = useText();
  const client = useQueryClient();
  const query = useJoinTokens();
  const [made, setMade] = useState<Token | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ['JoinToken', 'list'] });
  const create = useMutation({
    mutationFn: () => ok(api.POST('/v1/join-tokens', { body: { kind: 'JoinToken', meta: { name: '' }, spec: {} } })),
    onSuccess: (x) => (setMade(x), again()),
  });
  const removal = useRemoval<Token>({
    remove: (x) => ok(api.DELETE('/v1/join-tokens/{id}', { params: { path: { id: x.meta.id ?? '' } } })),
    title: (name) => t('one.deleteTitle', { name }),
    help: t('tok.deleteHelp'),
    untyped: true,
  });
  const button = (
    <Button isLoading={create.isPending} onClick={() => create.mutate()}>
      {t('tok.add')}
    </Button>
  );
  const columns: Column<Token>[] = [
    { id: 'name', title: t('common.name'), cell: (x) => x.meta.name },
    { id: 'until', title: t('tok.until'), value: (x) => x.spec.expiresAt, cell: (x) => <Time at={x.spec.expiresAt} /> },
    {
      id: 'used',
      title: t('tok.used'),
      cell: (x) =>
        x.status?.usedAt
          ? t('tok.usedBy', { node: x.status.usedBy ?? '', at: formatTime(x.status.usedAt, language) })
          : t('common.never'),
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (x) => (
        <Button
          variant="link"
          isInline
          isDanger
          aria-label={`${t('common.delete')}: ${x.meta.name}`}
          onClick={() => removal.ask(x)}
        >
          {t('common.delete')}
        </Button>
      ),
    },
  ];
  return (
    <div className="basalt-stack">
      <ErrorAlert error={create.error} onClose={create.reset} />
      {made?.token && (
        <Alert component="h2" variant="success" isInline isLiveRegion title={t('tok.ready')}>
          <div className="basalt-stack">
            <p>{t('tok.readyHelp', { until: formatTime(made.spec.expiresAt, language) })}</p>
            <Copyable label={t('tok.run')} text={`sudo basalt node join ${made.token}`} />
            <div>
              <Button variant="secondary" onClick={() => setMade(null)}>
                {t('common.close')}
              </Button>
            </div>
          </div>
        </Alert>
      )}
      {(query.data?.items.length ?? 0) > 0 && <div>{button}</div>}
      <ObjectList
        name="join-tokens"
        label={t('mnt.tokens')}
        columns={columns}
        query={query}
        bulk={[removal.bulk()]}
        keyOf={(x) => x.meta.id ?? x.meta.name}
        empty={<Empty title={t('tok.empty')} help={t('tok.emptyHelp')} icon={KeyIcon} action={button} />}
      />
      {removal.dialog}
    </div>
  );
}
