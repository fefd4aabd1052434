// This month's costs so far, by day, and the share of the budgets that they use.
import { Card, CardBody, CardFooter, CardTitle, Progress, ProgressVariant } from '@patternfly/react-core';
import { useState } from 'react';
import { Link } from 'wouter';
import { useBudgets, useCosts } from '../../api/costs';
import { useWallet } from '../../api/queries';
import { useText } from '../../i18n';
import { daysOf, forecast, stackOf } from '../../lib/costs';
import { formatDay, formatMicros } from '../../lib/format';
import { balanceOf } from '../../lib/organization';
import { month } from '../../lib/period';
import { CostChart, shownParts } from '../../parts/cost-chart';
import { ErrorAlert } from '../../parts/error';
import { useProject } from '../../parts/project';

function Budgets({ organization, currency }: { organization: string; currency: string }) {
  const { t, language } = useText();
  const { data } = useBudgets(organization);
  const money = (micros: number) => formatMicros(micros, currency, language);
  return (data?.items ?? []).map((b) => {
    const [spent, amount] = [b.status?.spentMicros ?? 0, b.spec.amountMicros];
    const percent = amount > 0 ? (100 * spent) / amount : 100;
    const of = t('dash.of', { used: money(spent), limit: money(amount) });
    return (
      <Progress
        key={b.meta.id}
        id={`budget-${b.meta.id}`}
        title={t('dash.budget', { name: b.meta.name })}
        value={Math.min(100, percent)}
        size="sm"
        label={of}
        valueText={of}
        variant={percent >= 100 ? ProgressVariant.danger : percent >= 80 ? ProgressVariant.warning : undefined}
      />
    );
  });
}

export function SpendCard() {
  const { t, language } = useText();
  const { organization } = useProject();
  const [now] = useState(() => new Date());
  const period = month(now);
  const costs = useCosts(organization, period, 'meter', { top: shownParts - 1 });
  const wallet = useWallet(organization, true);
  const balance = wallet.data && balanceOf(wallet.data.balanceMicros);
  const c = costs.data;
  const expected = c && forecast(c.usageMicros, c.commitmentMicros, period, now);
  const money = (micros: number) => formatMicros(micros, c?.currency ?? 'EUR', language);
  return (
    <Card>
      <CardTitle component="h2">{t('dash.spend')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={costs.error} />
        {!organization && <p className="basalt-note">{t('usage.noOrganizationHelp')}</p>}
        {c && (
          <>
            <p className="basalt-big">{money(c.totalMicros)}</p>
            <p className="basalt-note">{t('dash.spendHelp', { from: formatDay(period.from, language) })}</p>
            {c.usageMicros > 0 && (
              <CostChart stack={stackOf(c.items, daysOf(period, now))} by="meter" currency={c.currency} />
            )}
            {expected !== undefined && expected > 0 && (
              <p>
                {t('cost.forecast')}: {t('cost.forecastOf', { amount: money(expected) })}
              </p>
            )}
          </>
        )}
        {organization && c && <Budgets organization={organization} currency={c.currency} />}
        {wallet.data && balance && (
          <p>
            {t(balance.key)}: {formatMicros(balance.micros, wallet.data.currency, language)}
          </p>
        )}
      </CardBody>
      <CardFooter className="basalt-actions">
        <Link href="/costs">{t('nav.costs')}</Link> <Link href="/usage">{t('nav.usage')}</Link>{' '}
        <Link href="/invoices/now">{t('dash.spendWhy')}</Link>
      </CardFooter>
    </Card>
  );
}
