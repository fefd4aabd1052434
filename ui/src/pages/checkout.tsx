// The result of a payment by card: the page to which the payment provider returns.
import { Alert, Button, Card, CardBody } from '@patternfly/react-core';
import { Link } from 'wouter';
import { ended, useBeginCheckout, useCheckout, type Checkout } from '../api/payments';
import { useText } from '../i18n';
import { told } from '../lib/cause';
import { formatMicros, formatTime } from '../lib/format';
import { checkoutStates } from '../parts/checkout-states';
import { ErrorAlert } from '../parts/error';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';
import { Rows } from '../parts/rows';
import { Note } from '../parts/told';
import { ToneLabel } from '../parts/tone';

/** PayInteractively pays the amount of a charge that failed on a page of the payment provider. */
function PayInteractively({ checkout: c }: { checkout: Checkout }) {
  const { t, language } = useText();
  const begin = useBeginCheckout(c.meta.organization, (url) => location.assign(url));
  const { amountMicros, invoice } = c.spec;
  return (
    <div>
      <Button
        isLoading={begin.isPending}
        isDisabled={begin.isPending || begin.isSuccess}
        onClick={() => begin.mutate({ amountMicros, invoice })}
      >
        {t('pay.interactive', { amount: formatMicros(amountMicros ?? 0, c.spec.currency ?? 'EUR', language) })}
      </Button>
      <ErrorAlert error={begin.error} />
    </div>
  );
}

export function CheckoutPage({ id }: { id: string }) {
  const { t, language } = useText();
  const query = useCheckout(id);
  if (query.isPending) return <Loading />;
  const c = query.data;
  const state = c?.status?.state ?? 'Opening';
  const [tone, text] = checkoutStates[state];
  const url = c?.status?.url;
  return (
    <PageBody title={t('pay.title')} above={{ href: '/invoices', title: t('inv.title') }}>
      <div className="basalt-stack">
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {c && (
          <>
            <div role="status">
              <ToneLabel tone={tone} text={t(text)} />
            </div>
            {c.status?.authenticationRequired && (
              <Alert component="p" variant="info" isInline title={t('pay.authentication')} />
            )}
            {c.status?.lastError && (
              <Alert component="p" variant="warning" isInline title={t('pay.refused')}>
                <Note of={told(c.status.lastError, c.status.cause)} />
              </Alert>
            )}
            <Card>
              <CardBody>
                <Rows
                  rows={[
                    [t('pay.amount'), formatMicros(c.spec.amountMicros ?? 0, c.spec.currency ?? 'EUR', language)],
                    [
                      t('pay.for'),
                      c.spec.invoice ? (
                        <Link href={`/invoices/${c.spec.invoice}`}>{t('pay.theInvoice')}</Link>
                      ) : (
                        t('pay.advance')
                      ),
                    ],
                    [t('pay.until'), !ended(c) && formatTime(c.status?.expiresAt, language)],
                  ]}
                />
              </CardBody>
            </Card>
            {c.spec.card && state === 'Failed' && <PayInteractively checkout={c} />}
            {state === 'Open' && url?.startsWith('https://') && <a href={url}>{t('pay.again')}</a>}
          </>
        )}
      </div>
    </PageBody>
  );
}
