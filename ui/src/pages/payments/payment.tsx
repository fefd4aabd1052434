// One payment: what was returned of it, and its refund for whoever sells to the organization.
import { Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { MoneyBillIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { asApiError } from '../../api/client';
import { isOnline, leftOf, sellsTo, usePayment, type Payment } from '../../api/refunds';
import type { Session } from '../../api/session';
import { RefundPayment } from '../../forms/refund';
import { useText } from '../../i18n';
import { formatMicros, formatTime } from '../../lib/format';
import { ErrorAlert } from '../../parts/error';
import { Empty } from '../../parts/list';
import { Loading } from '../../parts/loading';
import { PageBody } from '../../parts/page';
import { Rows } from '../../parts/rows';
import { DisputesOf } from './disputes';
import { RefundsOf } from './refunds';

function Facts({ payment: p }: { payment: Payment }) {
  const { t, language } = useText();
  const money = (micros: number | undefined) => micros && formatMicros(micros, p.spec.currency, language);
  return (
    <Card>
      <CardTitle component="h2">{money(p.spec.amountMicros)}</CardTitle>
      <CardBody>
        <Rows
          rows={[
            [t('cust.paymentType'), t(`cust.type.${p.spec.type ?? 'payment'}`)],
            [t('cust.received'), formatTime(p.spec.receivedAt, language)],
            [t('cust.reference'), <code key="reference">{p.spec.reference}</code>],
            [t('cust.note'), p.spec.note],
            [t('refund.refunded'), money(p.status?.refundedMicros)],
            [t('refund.disputed'), money(p.status?.disputedMicros)],
            [
              t('refund.left'),
              (p.spec.type ?? 'payment') === 'payment' && (money(leftOf(p)) || t('refund.nothingLeft')),
            ],
          ]}
        />
      </CardBody>
    </Card>
  );
}

export function PaymentPage({ session, id }: { session: Session; id: string }) {
  const { t } = useText();
  const query = usePayment(id);
  const [refunding, setRefunding] = useState(false);
  if (query.isPending) return <Loading />;
  const p = query.data;
  const sells = sellsTo(session, p?.meta.organization);
  const above =
    p && sells
      ? { href: `/organizations/${p.meta.organization}/money`, title: t('cust.money') }
      : { href: '/invoices', title: t('inv.title') };
  const gone = !p && asApiError(query.error).code === 'not_found';
  const isPayment = (p?.spec.type ?? 'payment') === 'payment';
  const action = p && sells && leftOf(p) > 0 && (
    <Button onClick={() => setRefunding(true)}>{t('refund.refund')}</Button>
  );
  return (
    <PageBody title={t(gone ? 'refund.gone' : 'refund.payment')} above={above} actions={action}>
      <div className="basalt-stack">
        {gone ? (
          <Empty title={t('refund.gone')} help={t('refund.goneHelp')} icon={MoneyBillIcon} />
        ) : (
          <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        )}
        {p && <Facts payment={p} />}
        {p && isPayment && (
          <Card>
            <CardTitle component="h2">{t('refund.title')}</CardTitle>
            <CardBody>
              <RefundsOf payment={id} />
            </CardBody>
          </Card>
        )}
        {p && isOnline(p) && (
          <Card>
            <CardTitle component="h2">{t('dispute.title')}</CardTitle>
            <CardBody>
              <DisputesOf payment={id} />
            </CardBody>
          </Card>
        )}
      </div>
      {p && refunding && <RefundPayment payment={p} onClose={() => setRefunding(false)} />}
    </PageBody>
  );
}
