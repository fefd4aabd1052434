import { Button, Card, CardBody, CardTitle, Label } from '@patternfly/react-core';
import { UserIcon } from '@patternfly/react-icons';
import { endSession, useSessions, type OwnSession } from '../../api/tenant';
import { useText } from '../../i18n';
import { formatTime } from '../../lib/format';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { Time } from '../../parts/time';

export function Sessions() {
  const { t, language } = useText();
  const query = useSessions();
  const address = (s: OwnSession) => s.spec.address || '–';
  const nameOf = (s: OwnSession) => `${address(s)}, ${formatTime(s.meta.createdAt, language)}`;
  const removal = useRemoval<OwnSession>({
    remove: endSession,
    title: (address) => t('acc.endTitle', { address }),
    help: t('acc.endHelp'),
    action: t('acc.end'),
    nameOf: address,
    untyped: true,
  });
  const columns: Column<OwnSession>[] = [
    {
      id: 'address',
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
    { id: 'role', title: t('common.role'), cell: (s) => t(`role.${s.spec.grant.role}`) },
    { id: 'begun', title: t('acc.begun'), value: (s) => s.meta.createdAt, cell: (s) => <Time at={s.meta.createdAt} /> },
    { id: 'used', title: t('acc.used'), value: (s) => s.status?.usedAt, cell: (s) => <Time at={s.status?.usedAt} /> },
    { id: 'until', title: t('acc.until'), value: (s) => s.spec.expiresAt, cell: (s) => <Time at={s.spec.expiresAt} /> },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (s) =>
        s.current ? (
          '–'
        ) : (
          <Button
            variant="link"
            isInline
            isDanger
            aria-label={`${t('acc.end')}: ${nameOf(s)}`}
            onClick={() => removal.ask(s)}
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
          name="sessions"
          label={t('acc.sessions')}
          columns={columns}
          query={query}
          bulk={[removal.bulk((s) => !s.current)]}
          nameOf={nameOf}
          keyOf={(s) => s.meta.id ?? ''}
          empty={<Empty title={t('acc.noSessions')} help={t('acc.noSessionsHelp')} icon={UserIcon} />}
        />
      </CardBody>
      {removal.dialog}
    </Card>
  );
}
