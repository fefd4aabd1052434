// Who changed what.
import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { HistoryIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { may, type Session } from '../api/session';
import { useAudit, useOrganizations, type AuditEvent } from '../api/tenant';
import { useText } from '../i18n';
import { formatTime } from '../lib/format';
import { Field } from '../parts/field';
import { Empty, ObjectList, usePages, type Column } from '../parts/list';
import { PageBody } from '../parts/page';

const most = 3; // objects that a row names

export function Audit({ session }: { session: Session }) {
  const { t, has, language } = useText();
  const seller = may(session, 'reseller');
  const organizations = useOrganizations(seller).data?.items ?? [];
  const [organization, setOrganization] = useState('');
  const [oldest, setOldest] = useState(false);
  const pages = usePages();
  const query = useAudit({ organization, oldest: oldest || undefined, limit: 25, continue: pages.token });
  const columns: Column<AuditEvent>[] = [
    { title: t('audit.at'), cell: (e) => formatTime(e.at, language) },
    {
      title: t('audit.who'),
      cell: (e) => {
        const role = `role.${e.role}`;
        return <>{e.name || e.actor} <span className="basalt-note">{[has(role) && t(role), e.from && t('audit.from', { address: e.from })].filter(Boolean).join(', ')}</span></>;
      },
    },
    { title: t('audit.did'), cell: (e) => e.operation },
    {
      title: t('audit.to'),
      cell: ({ objects, more = 0 }) => {
        const rest = more + Math.max(0, objects.length - most);
        return (
          <>
            {objects.slice(0, most).map((o) => `${o.kind} ${o.name || o.id}${o.removed ? ` (${t('audit.removed')})` : ''}`).join(', ')}
            {rest > 0 && ` ${t('audit.more', { n: rest })}`}
          </>
        );
      },
    },
  ];
  return (
    <PageBody title={t('audit.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('audit.help')}</p>
        <div className="basalt-pair">
          <Field id="audit-order" label={t('audit.order')}>
            <FormSelect id="audit-order" value={oldest ? 'oldest' : 'newest'} onChange={(_, v) => (setOldest(v === 'oldest'), pages.reset())}>
              {(['newest', 'oldest'] as const).map((o) => <FormSelectOption key={o} value={o} label={t(`audit.${o}`)} />)}
            </FormSelect>
          </Field>
          {seller && (
            <Field id="audit-organization" label={t('audit.organization')}>
              <FormSelect id="audit-organization" value={organization} onChange={(_, v) => (setOrganization(v), pages.reset())}>
                <FormSelectOption value="" label={may(session, 'operator') ? t('audit.everybody') : t('new.choose')} />
                {organizations.map((o) => <FormSelectOption key={o.meta.id} value={o.meta.id} label={o.spec.displayName || o.meta.name} />)}
              </FormSelect>
            </Field>
          )}
        </div>
        <ObjectList label={t('audit.title')} columns={columns} query={query} keyOf={(e) => String(e.seq)} pages={pages} empty={<Empty title={t('audit.empty')} help={t('audit.emptyHelp')} icon={HistoryIcon} />} />
      </div>
    </PageBody>
  );
}
