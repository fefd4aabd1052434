// A seller's customers: revenue by month and its margin, the largest ones, and those with problems, with what is due.
import { Card, CardBody, CardFooter, CardTitle } from '@patternfly/react-core';
import { useState } from 'react';
import { Link } from 'wouter';
import { useOrganizations } from '../../api/customers';
import { useWallet } from '../../api/queries';
import { useRevenue } from '../../api/revenue';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { formatMicros } from '../../lib/format';
import { reasonOf, standingOf } from '../../lib/organization';
import { choices } from '../../lib/revenue';
import { ErrorAlert } from '../../parts/error';
import { Stacked } from '../../parts/stacked';
import { StandingLabel } from '../../parts/standing';

/** How many customers a card lists. */
const most = 5;

function RevenueCard() {
  const { t, language } = useText();
  const [period] = useState(() => choices(new Date())[0]!);
  const months = useRevenue(period, 'month', '');
  const customers = useRevenue(period, 'organization', '', most);
  const totals = months.data?.totals ?? [];
  const currency = totals[0]?.currency ?? 'EUR';
  const of = (months.data?.items ?? []).filter((m) => m.currency === currency);
  const money = (micros: number) => formatMicros(Math.round(micros), currency, language);
  const name = new Intl.DateTimeFormat(language, { month: 'short', timeZone: 'UTC' });
  return (
    <Card>
      <CardTitle component="h2">{t('dash.revenue')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={months.error ?? customers.error} />
        {months.data && totals.length === 0 && <p className="basalt-note">{t('rev.emptyHelp')}</p>}
        {totals.map((s) => (
          <p key={s.currency} className="basalt-big">
            {formatMicros(s.netMicros, s.currency, language)}
          </p>
        ))}
        {totals.map(
          ({ wholesaleMicros = 0, netMicros, currency: c }) =>
            wholesaleMicros !== 0 && (
              <p key={c} className="basalt-note">
                {t('rev.totalMargin', {
                  margin: formatMicros(netMicros - wholesaleMicros, c, language),
                  wholesale: formatMicros(wholesaleMicros, c, language),
                })}
              </p>
            ),
        )}
        {of.length > 0 && (
          <Stacked
            title={t('dash.revenue')}
            days={of.map((m) => name.format(new Date(`${m.key}-01T00:00:00Z`)))}
            parts={[{ key: 'net', label: t('rev.net'), values: of.map((m) => Math.max(0, m.netMicros)) }]}
            format={money}
          />
        )}
        <ol className="basalt-plain">
          {(customers.data?.items ?? []).map((c) => (
            <li key={`${c.key} ${c.currency}`}>
              <Link href={`/organizations/${c.key}`}>{c.name || c.key}</Link>{' '}
              <span className="basalt-number">{formatMicros(c.netMicros, c.currency, language)}</span>
            </li>
          ))}
        </ol>
      </CardBody>
      <CardFooter>
        <Link href="/revenue">{t('nav.revenue')}</Link>
      </CardFooter>
    </Card>
  );
}

/** Due shows what a customer owes. */
function Due({ organization }: { organization: string }) {
  const { t, language } = useText();
  const { data } = useWallet(organization, true);
  if (!data || data.balanceMicros >= 0) return null;
  const amount = formatMicros(-data.balanceMicros, data.currency, language);
  return <span className="basalt-number">{t('cust.owes', { amount })}</span>;
}

function CustomersCard() {
  const { t, count } = useText();
  const { data, error } = useOrganizations({ limit: 1000 });
  const items = data?.items ?? [];
  const open = items.filter((o) => standingOf(o) !== 'active');
  return (
    <Card>
      <CardTitle component="h2">{t('nav.organizations')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={error} />
        <p className="basalt-big">{data ? `${items.length}${data.continue ? '+' : ''}` : '…'}</p>
        {data && <p>{open.length === 0 ? t('dash.allInOrder') : count('dash.notInOrder', open.length)}</p>}
        <ul className="basalt-plain">
          {open.slice(0, most).map((o) => (
            <li key={o.meta.id}>
              <Link href={`/organizations/${o.meta.id}/money`}>{o.spec.displayName || o.meta.name}</Link>{' '}
              <StandingLabel organization={o} /> <Due organization={o.meta.id ?? ''} />{' '}
              <span className="basalt-note">{reasonOf(o)}</span>
            </li>
          ))}
        </ul>
      </CardBody>
      <CardFooter>
        <Link href="/organizations">{t('dash.viewAll')}</Link>
      </CardFooter>
    </Card>
  );
}

export function SellerCards({ session }: { session: Session }) {
  return (
    <div className="basalt-columns">
      {may(session, 'reseller') && <RevenueCard />}
      <CustomersCard />
    </div>
  );
}
