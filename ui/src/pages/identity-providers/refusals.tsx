// Why sign-ins with an identity provider were refused lately.
import { Alert } from '@patternfly/react-core';
import { CheckCircleIcon } from '@patternfly/react-icons';
import { useRefusedSignIns, type IdentityProvider, type RefusedSignIn } from '../../api/identity-providers';
import { useText } from '../../i18n';
import { asCommand } from '../../lib/shell';
import { Copyable } from '../../parts/copyable';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { Time } from '../../parts/time';

export function Refusals({ provider: p }: { provider: IdentityProvider }) {
  const { t } = useText();
  const query = useRefusedSignIns(p.meta.id ?? '');
  const columns: Column<RefusedSignIn>[] = [
    { id: 'at', title: t('idp.refusedAt'), value: (r) => r.at, cell: (r) => <Time at={r.at} /> },
    { id: 'reason', title: t('idp.refusedReason'), cell: (r) => r.reason },
    {
      id: 'who',
      title: t('idp.refusedWho'),
      cell: (r) => (r.confirmed ? r.email || t('idp.refusedConfirmed') : t('idp.refusedUnknown')),
    },
    { id: 'count', title: t('idp.refusedCount'), value: (r) => r.count, cell: (r) => r.count },
  ];
  return (
    <div className="basalt-stack">
      <p className="basalt-note">{t('idp.refusalsHelp')}</p>
      {query.data?.incomplete && <Alert component="p" variant="warning" isInline title={t('idp.refusalsIncomplete')} />}
      <ObjectList
        label={t('idp.refusals')}
        columns={columns}
        query={query}
        keyOf={(r) => JSON.stringify([r.confirmed, r.email, r.reason])}
        empty={<Empty title={t('idp.refusalsEmpty')} help={t('idp.refusalsEmptyHelp')} icon={CheckCircleIcon} />}
      />
      <Copyable label={t('new.cli')} text={asCommand(['identity-provider', 'refusals', p.meta.name])} />
    </div>
  );
}
