// The payments by card of an invoice: which were tried, and what became of them.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { Link } from 'wouter';
import { useInvoiceCheckouts } from '../../api/payments';
import { takenOf, usePayment } from '../../api/refunds';
import { useText } from '../../i18n';
import { told } from '../../lib/cause';
import { formatMicros, formatTime } from '../../lib/format';
import { checkoutStates } from '../../parts/checkout-states';
import { ErrorAlert } from '../../parts/error';
import { Note } from '../../parts/told';
import { ToneLabel } from '../../parts/tone';

/** Returned tells what was refunded of a payment, or taken back by a bank. */
function Returned({ payment }: { payment: string }) {
  const { t, language } = useText();
  const p = usePayment(payment).data;
  if (!p || takenOf(p) === 0) return null;
  return (
    <Link href={`/payments/${payment}`}>
      {t('refund.returnedOf', { amount: formatMicros(takenOf(p), p.spec.currency, language) })}
    </Link>
  );
}

/** Attempts renders nothing if no payment by card was tried. */
export function Attempts({ invoice, organization }: { invoice: string; organization: string | undefined }) {
  const { t, language } = useText();
  const query = useInvoiceCheckouts(organization, invoice);
  const items = query.data?.items ?? [];
  if (items.length === 0 && !query.error) return null;
  return (
    <Card>
      <CardTitle component="h2">{t('inv.attempts')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        <ul aria-label={t('inv.attempts')}>
          {items.map((c) => {
            const [tone, text] = checkoutStates[c.status?.state ?? 'Opening'];
            return (
              <li key={c.meta.id}>
                <Link href={`/checkouts/${c.meta.id}`}>{formatTime(c.meta.createdAt, language)}</Link>
                {', '}
                {formatMicros(c.spec.amountMicros ?? 0, c.spec.currency ?? 'EUR', language)}
                {c.spec.autoPay && ` (${t('autopay.title')})`}: <ToneLabel tone={tone} text={t(text)} />{' '}
                <Note of={told(c.status?.lastError, c.status?.cause)} />{' '}
                {c.status?.payment && <Returned payment={c.status.payment} />}
              </li>
            );
          })}
        </ul>
      </CardBody>
    </Card>
  );
}
