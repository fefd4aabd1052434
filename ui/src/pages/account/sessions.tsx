import { Button, Card, CardBody, CardTitle, Label } from '@patternfly/react-core';
import { UserIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { endSession, useSessions, type OwnSession } from '../../api/tenant';
import { useText } from '../../i18n';
import { formatTime } from '../../lib/format';
import { Confirm } from '../../parts/confirm';
import { Empty, ObjectList, type Column } from '../../parts/list';

export function Sessions() {
  const { t, language } = useText();
  const client = useQueryClient();
  const query = useSessions();
  const [ending, setEnding] = useState<OwnSession | null>(null);
  const end = useMutation({
    mutationFn: endSession,
    onSuccess: () => (setEnding(null), client.invalidateQueries({ queryKey: ['Session', 'list'] })),
  });
  const address = (s: OwnSession) => s.spec.address || '–';
  const columns: Column<OwnSession>[] = [
    {
      title: t('acc.address'),
      cell: (s) => (
        <span className="basalt-labels">
          {address(s)}
          {s.current && (
            <Label isCompact color="green">
              {t('acc.this')}
            </Label>
          )}
        </span>
      ),
    },
    { title: t('common.role'), cell: (s) => t(`role.${s.spec.grant.role}`) },
    { title: t('acc.begun'), cell: (s) => formatTime(s.meta.createdAt, language) },
    { title: t('acc.used'), cell: (s) => formatTime(s.status?.usedAt, language) || '–' },
    { title: t('acc.until'), cell: (s) => formatTime(s.spec.expiresAt, language) },
    {
      title: t('common.actions'),
      cell: (s) =>
        s.current ? (
          '–'
        ) : (
          <Button
            variant="link"
            isInline
            isDanger
            aria-label={`${t('acc.end')}: ${address(s)}, ${formatTime(s.meta.createdAt, language)}`}
            onClick={() => (end.reset(), setEnding(s))}
          >
            {t('acc.end')}
          </Button>
        ),
    },
  ];
  return (
    <Card>
      <CardTitle component="h2">{t('acc.sessions')}</CardTitle>
      <CardBody>
        <ObjectList
          label={t('acc.sessions')}
          columns={columns}
          query={query}
          keyOf={(s) => s.meta.id ?? ''}
          empty={<Empty title={t('acc.noSessions')} help={t('acc.noSessionsHelp')} icon={UserIcon} />}
        />
      </CardBody>
      {ending && (
        <Confirm
          title={t('acc.endTitle', { address: address(ending) })}
          help={t('acc.endHelp')}
          action={t('acc.end')}
          danger
          busy={end.isPending}
          error={end.error}
          onConfirm={() => end.mutate(ending)}
          onClose={() => setEnding(null)}
        />
      )}
    </Card>
  );
}
