// The payments of an organization, with what was returned of each.
import { Title } from '@patternfly/react-core';
import { MoneyBillIcon } from '@patternfly/react-icons';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { collections } from '../../api/collection';
import { takenOf, type Payment } from '../../api/refunds';
import { useText } from '../../i18n';
import { formatMicros } from '../../lib/format';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { Time } from '../../parts/time';

/** add is the button with which whoever sells to the organization records a payment. */
export function Payments({ organization, add }: { organization: string; add?: ReactNode }) {
  const { t, language } = useText();
  const list = useListing(collections.payments, {
    fixed: { organization },
    sort: '-spec.receivedAt',
    prefix: 'payments.',
  });
  const money = (micros: number, currency: string) => (
    <span className="basalt-number">{formatMicros(micros, currency, language)}</span>
  );
  const columns: Column<Payment>[] = [
    {
      id: 'received',
      sort: 'spec.receivedAt',
      title: t('cust.received'),
      value: (p) => p.spec.receivedAt,
      cell: (p) => <Time at={p.spec.receivedAt} />,
    },
    {
      id: 'paymentType',
      sort: 'spec.type',
      title: t('cust.paymentType'),
      cell: (p) => t(`cust.type.${p.spec.type ?? 'payment'}`),
    },
    {
      id: 'amountColumn',
      sort: 'spec.amountMicros',
      title: t('cust.amountColumn'),
      value: (p) => p.spec.amountMicros / 1e6,
      cell: (p) => money(p.spec.amountMicros, p.spec.currency),
    },
    {
      id: 'returned',
      title: t('refund.returned'),
      value: (p) => takenOf(p) / 1e6,
      cell: (p) => (takenOf(p) > 0 ? money(takenOf(p), p.spec.currency) : '–'),
    },
    {
      id: 'reference',
      sort: 'spec.reference',
      title: t('cust.reference'),
      cell: (p) => <Link href={`/payments/${p.meta.id}`}>{p.spec.reference}</Link>,
    },
    { id: 'note', sort: 'spec.note', title: t('cust.note'), cell: (p) => p.spec.note || '–' },
  ];
  return (
    <section className="basalt-stack">
      <div className="basalt-header">
        <Title headingLevel="h2" size="lg">
          {t('cust.payments')}
        </Title>
        {(list.query.data?.items.length ?? 0) > 0 && add}
      </div>
      <ObjectList
        name="payments"
        label={t('cust.payments')}
        columns={columns}
        list={list}
        keyOf={(p) => p.meta.id ?? p.spec.reference}
        empty={
          add ? (
            <Empty title={t('cust.paymentEmpty')} help={t('cust.paymentEmptyHelp')} icon={MoneyBillIcon} action={add} />
          ) : (
            <p className="basalt-note">{t('refund.noPayments')}</p>
          )
        }
      />
    </section>
  );
}
