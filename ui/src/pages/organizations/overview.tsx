// A customer's properties and state.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useOrganization, usePriceBooks, type Organization } from '../../api/customers';
import { useWallet } from '../../api/queries';
import { useVATCheck } from '../../api/taxes';
import { useText } from '../../i18n';
import { formatDay, formatMicros, formatTime } from '../../lib/format';
import { balanceOf } from '../../lib/organization';
import { ErrorAlert } from '../../parts/error';
import { AddFunds, PayInvoice } from '../../parts/pay';
import { RedeemVoucher } from '../../parts/voucher';
import { Rows } from '../../parts/rows';
import { ToneLabel } from '../../parts/tone';

const vatTones = { Pending: 'busy', Valid: 'good', Invalid: 'bad' } as const;

function Reseller({ id }: { id: string }) {
  return <>{useOrganization(id).data?.meta.name ?? id}</>;
}

/** WalletCard shows an organization's balance; mode is its billing mode, if known. */
export function WalletCard({
  id,
  mode,
}: {
  id: string | undefined;
  mode?: NonNullable<Organization['spec']['billing']>['mode'];
}) {
  const { t, language } = useText();
  const wallet = useWallet(id, true);
  const money = (micros: number) => formatMicros(micros, wallet.data?.currency ?? 'EUR', language);
  const balance = balanceOf(wallet.data?.balanceMicros ?? 0, mode);
  return (
    <Card>
      <CardTitle component="h2">{t(balance.key)}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={wallet.error} onRetry={() => void wallet.refetch()} />
        {wallet.data && (
          <>
            <p className="basalt-big">{money(balance.micros)}</p>
            <Rows
              rows={[
                [t('cust.unbilled'), money(wallet.data.unbilledMicros)],
                [t('cust.reason'), wallet.data.message],
              ]}
            />
            <div>
              <AddFunds wallet={wallet.data} /> <RedeemVoucher wallet={wallet.data} />
            </div>
            {(wallet.data.open?.length ?? 0) > 0 && (
              <>
                <h3>{t('cust.openInvoices')}</h3>
                <ul>
                  {wallet.data.open?.map((i) => (
                    <li key={i.invoice}>
                      {t('cust.openInvoice', {
                        number: i.number,
                        amount: money(i.leftMicros),
                        due: formatDay(i.dueAt, language),
                      })}{' '}
                      <PayInvoice wallet={wallet.data} invoice={i.invoice} />
                    </li>
                  ))}
                </ul>
              </>
            )}
          </>
        )}
      </CardBody>
    </Card>
  );
}

/** VATNumber shows a VAT number, and what VIES says about it if it is verified there. */
export function VATNumber({ organization, number }: { organization: string; number: string }) {
  const { t, language } = useText();
  const check = useVATCheck(organization).data?.items.find((c) => c.spec.number === number);
  if (!check) return number;
  const { state, checkedAt, consultation, name, nameDiffers, lastError } = check.status ?? {};
  return (
    <>
      {number} <ToneLabel tone={vatTones[state || 'Pending']} text={t(`cust.vat.${state || 'Pending'}`)} />{' '}
      {nameDiffers && (
        <ToneLabel tone="warning" text={t('cust.vatOtherName', { customer: check.spec.customer ?? '' })} />
      )}{' '}
      {[
        name,
        checkedAt && t('cust.vatAt', { at: formatTime(checkedAt, language) }),
        consultation && t('cust.vatConsultation', { number: consultation }),
        lastError && t('cust.vatFailed', { reason: lastError }),
      ]
        .filter(Boolean)
        .join('; ')}
    </>
  );
}

export function Overview({ organization: o }: { organization: Organization }) {
  const { t, language } = useText();
  const books = usePriceBooks();
  const b = o.spec.billing;
  return (
    <div className="basalt-split">
      <Card>
        <CardTitle component="h2">{t('one.details')}</CardTitle>
        <CardBody>
          <Rows
            rows={[
              [t('cust.displayName'), o.spec.displayName],
              [
                t('cust.priceBook'),
                books.data?.items.find((x) => x.meta.id === o.spec.priceBook)?.meta.name ?? t('cust.defaultBook'),
              ],
              [t('cust.reseller'), o.meta.organization && <Reseller id={o.meta.organization} />],
              [t('cust.billing'), t(`cust.billing.${b?.mode ?? 'none'}`)],
              [t('cust.timeZone'), b?.timeZone],
              [t('cust.dueDays'), b?.mode === 'invoice' && b.dueDays],
              [t('cust.address'), b?.address && <span className="basalt-lines">{b.address.join('\n')}</span>],
              [t('cust.country'), [b?.country, b?.region].filter(Boolean).join(', ')],
              [t('cust.taxId'), b?.taxId && <VATNumber key="number" organization={o.meta.id ?? ''} number={b.taxId} />],
              [t('cust.id'), <code key="id">{o.meta.id}</code>],
              [t('common.created'), formatTime(o.meta.createdAt, language)],
            ]}
          />
        </CardBody>
      </Card>
      <WalletCard id={o.meta.id} mode={b?.mode} />
    </div>
  );
}
