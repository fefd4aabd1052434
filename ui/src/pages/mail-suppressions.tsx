// Addresses from which mail was returned: operators let mail be sent to them again.
import { EnvelopeIcon } from '@patternfly/react-icons';
import { useMemo } from 'react';
import { useOrganizationNames } from '../api/cluster';
import { collections } from '../api/collection';
import { liftSuppression, type MailSuppression } from '../api/mail';
import { may, type Session } from '../api/session';
import { useText } from '../i18n';
import type { Bulk } from '../parts/list-bulk';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { Time } from '../parts/time';
import { ToneLabel } from '../parts/tone';

export function MailSuppressionsPage({ session }: { session: Session }) {
  const { t, count } = useText();
  const operator = may(session, 'operator');
  const seller = may(session, 'reseller');
  const list = useListing(collections.mailSuppressions, { sort: '-status.returnedAt' });
  const names = useOrganizationNames(seller).data?.items;
  const bulk = useMemo<Bulk<MailSuppression>[]>(
    () => (operator ? [{ id: 'lift', text: t('sup.lift'), help: t('sup.liftHelp'), run: liftSuppression }] : []),
    [operator, t],
  );
  const columns: Column<MailSuppression>[] = [
    { id: 'address', sort: 'spec.address', title: t('sup.address'), cell: (s) => s.spec.address },
    {
      id: 'state',
      sort: 'status.suppressedAt',
      title: t('common.state'),
      cell: (s) =>
        s.status?.suppressedAt ? (
          <ToneLabel tone="bad" text={t('sup.suppressed')} />
        ) : (
          <ToneLabel tone="warning" text={count('sup.temporary', s.status?.temporary ?? 0)} />
        ),
    },
    {
      id: 'returned',
      sort: 'status.returnedAt',
      title: t('sup.returned'),
      value: (s) => s.status?.returnedAt,
      cell: (s) => <Time at={s.status?.returnedAt} />,
    },
    { id: 'note', sort: 'status.lastError', title: t('cust.reason'), cell: (s) => s.status?.lastError || '–' },
    ...(seller
      ? [
          {
            id: 'organization',
            sort: 'organization',
            title: t('dom.organization'),
            cell: (s: MailSuppression) =>
              names?.find((o) => o.meta.id === s.meta.organization)?.meta.name ?? s.meta.organization ?? '–',
          },
        ]
      : []),
  ];
  return (
    <PageBody title={t('sup.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t(operator ? 'sup.helpOperator' : 'sup.help')}</p>
        <ObjectList
          label={t('sup.title')}
          name="mail-suppressions"
          columns={columns}
          list={list}
          bulk={bulk}
          nameOf={(s) => s.spec.address}
          keyOf={(s) => s.meta.id ?? s.meta.name}
          empty={<Empty title={t('sup.empty')} help={t('sup.emptyHelp')} icon={EnvelopeIcon} />}
        />
      </div>
    </PageBody>
  );
}
