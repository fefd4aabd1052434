// Refunds: of one payment, or of all organizations that a seller sells to.
import { UndoIcon } from '@patternfly/react-icons';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useOrganizationNames } from '../../api/cluster';
import { collections } from '../../api/collection';
import type { Refund } from '../../api/refunds';
import { useText } from '../../i18n';
import { formatMicros } from '../../lib/format';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { Time } from '../../parts/time';
import { ToneLabel } from '../../parts/tone';

const states = ['Pending', 'Succeeded', 'Failed'] as const;
const tones = { Pending: 'busy', Succeeded: 'good', Failed: 'bad' } as const;

/** useRefundColumns returns the columns that every list of refunds has. */
function useRefundColumns(): Column<Refund>[] {
  const { t, language } = useText();
  return [
    {
      id: 'made',
      sort: 'createdAt',
      title: t('refund.made'),
      value: (r) => r.meta.createdAt,
      cell: (r) => <Time at={r.meta.createdAt} />,
    },
    {
      id: 'amountColumn',
      sort: 'spec.amountMicros',
      title: t('cust.amountColumn'),
      value: (r) => (r.spec.amountMicros ?? 0) / 1e6,
      cell: (r) => (
        <span className="basalt-number">
          {formatMicros(r.spec.amountMicros ?? 0, r.spec.currency ?? 'EUR', language)}
        </span>
      ),
    },
    {
      id: 'state',
      sort: 'status.state',
      title: t('common.state'),
      cell: (r) => {
        const state = r.status?.state || 'Pending';
        return <ToneLabel tone={tones[state]} text={t(`refund.state.${state}`)} />;
      },
    },
    { id: 'reason', sort: 'spec.reason', title: t('cust.reason'), cell: (r) => r.spec.reason },
    {
      id: 'reference',
      sort: 'spec.reference',
      title: t('cust.reference'),
      cell: (r) => r.spec.reference || r.status?.providerRefund || '–',
    },
    { id: 'note', sort: 'status.lastError', title: t('refund.error'), cell: (r) => r.status?.lastError || '–' },
  ];
}

/** RefundsOf lists the refunds of one payment. */
export function RefundsOf({ payment }: { payment: string }) {
  const { t } = useText();
  const list = useListing(collections.refunds, {
    fixed: { fieldSelector: `spec.payment=${payment}` },
    sort: '-createdAt',
    prefix: 'refunds.',
  });
  return (
    <ObjectList
      name="refunds-of-payment"
      label={t('refund.title')}
      columns={useRefundColumns()}
      list={list}
      keyOf={(r) => r.meta.id ?? r.meta.name}
      empty={<p className="basalt-note">{t('refund.none')}</p>}
    />
  );
}

/** useStateFilter returns a filter by the state that the status of a kind has. */
export function useStateFilter<S extends string>(all: readonly S[], text: (s: S) => string) {
  const { t } = useText();
  return [
    {
      id: 'state',
      field: 'status.state',
      label: t('common.state'),
      any: t('list.anyState'),
      options: all.map((value) => ({ value, label: text(value) })),
    },
  ];
}

/** useCustomerColumns returns the columns with which a seller tells the payments of its organizations apart. */
export function useCustomerColumns<T extends { meta: { organization?: string }; spec: { payment: string } }>(): {
  organization: Column<T>;
  payment: Column<T>;
} {
  const { t } = useText();
  const names = useOrganizationNames(true).data?.items;
  const nameOf = (id: string | undefined) => names?.find((o) => o.meta.id === id)?.meta.name ?? id ?? '–';
  const organization = (x: T): ReactNode => (
    <Link href={`/organizations/${x.meta.organization}/money`}>{nameOf(x.meta.organization)}</Link>
  );
  return {
    organization: { id: 'organization', sort: 'organization', title: t('dom.organization'), cell: organization },
    payment: {
      id: 'payment',
      sort: 'spec.payment',
      title: t('refund.payment'),
      cell: (x) => <Link href={`/payments/${x.spec.payment}`}>{x.spec.payment}</Link>,
    },
  };
}

export function RefundsPage() {
  const { t } = useText();
  const facets = useStateFilter(states, (s) => t(`refund.state.${s}`));
  const list = useListing(collections.refunds, { sort: '-createdAt', facets });
  const { organization, payment } = useCustomerColumns<Refund>();
  return (
    <PageBody title={t('refund.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('refund.help')}</p>
        <ObjectList
          name="refunds"
          label={t('refund.title')}
          columns={[organization, payment, ...useRefundColumns()]}
          list={list}
          keyOf={(r) => r.meta.id ?? r.meta.name}
          empty={<Empty title={t('refund.empty')} help={t('refund.emptyHelp')} icon={UndoIcon} />}
        />
      </div>
    </PageBody>
  );
}
