// The cost of usage: by day and by project, resource or meter. The server calculates all sums.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { ChartBarIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { Link } from 'wouter';
import { useCosts, type CostBy, type Costs } from '../api/costs';
import { useText } from '../i18n';
import { daysOf, forecast, rowsOf, stackOf, type CostRow } from '../lib/costs';
import { formatMicros, formatPercent } from '../lib/format';
import { useParam } from '../lib/address';
import { month, monthName, type Month } from '../lib/period';
import { CostChart, nameOf, shownParts } from '../parts/cost-chart';
import { ErrorAlert } from '../parts/error';
import { Money } from '../parts/exact';
import { Empty, ObjectList, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useProject } from '../parts/project';
import { Rows } from '../parts/rows';
import { SelectField } from '../parts/text-field';

const sums: CostBy[] = ['project', 'resource', 'meter'];

/** Totals shows what is added to usage, and the total. */
function Totals({ costs, period }: { costs: Costs; period: Month }) {
  const { t, language } = useText();
  const [now] = useState(() => new Date());
  const money = (micros: number) => formatMicros(micros, costs.currency, language);
  const exact = (micros: number) => <Money micros={micros} currency={costs.currency} />;
  const rest = costs.commitmentMicros;
  const expected = forecast(costs.usageMicros, rest, period, now);
  return (
    <Card>
      <CardTitle component="h2">{t('cost.total')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-big">{exact(costs.totalMicros)}</p>
        <Rows
          rows={[
            [t('cost.usage'), exact(costs.usageMicros)],
            [t('cost.commitments'), costs.commitmentMicros > 0 && exact(costs.commitmentMicros)],
            [t('cost.minimum'), costs.minimumMicros > 0 && exact(costs.minimumMicros)],
            [t('cost.taxes'), costs.taxMicros > 0 && exact(costs.taxMicros)],
            [t('cost.forecast'), expected !== undefined && t('cost.forecastOf', { amount: money(expected) })],
          ]}
        />
      </CardBody>
    </Card>
  );
}

function CostTable({ costs, by }: { costs: Costs; by: CostBy }) {
  const text = useText();
  const { t, language } = text;
  const rows = rowsOf(costs.items);
  const all = rows.reduce((n, r) => n + r.micros, 0);
  const columns: Column<CostRow>[] = [
    {
      id: 'of',
      title: t(`cost.by.${by}`),
      value: (r) => nameOf(r, by, text),
      cell: (r) =>
        r.key.startsWith('ins-') ? <Link href={`/instances/${r.key}`}>{r.name || r.key}</Link> : nameOf(r, by, text),
    },
    {
      id: 'amount',
      title: t('cost.amount'),
      value: (r) => r.micros / 1e6,
      cell: (r) => <Money micros={r.micros} currency={costs.currency} />,
    },
    {
      id: 'part',
      title: t('cost.part'),
      value: (r) => (all > 0 ? r.micros / all : 0),
      cell: (r) => (
        <span className="basalt-number">{formatPercent(all > 0 ? (100 * r.micros) / all : 0, language)}</span>
      ),
    },
  ];
  return (
    <ObjectList
      name="costs"
      label={t('cost.title')}
      columns={columns}
      query={{ data: { items: rows }, error: null, isPending: false, refetch: () => undefined }}
      keyOf={(r) => r.key}
      empty={<Empty title={t('usage.empty')} help={t('usage.emptyHelp')} icon={ChartBarIcon} />}
    />
  );
}

export function CostsPage() {
  const { t, language } = useText();
  const { organization } = useProject();
  const [now] = useState(() => new Date());
  const [months] = useState(() => Array.from({ length: 12 }, (_, i) => month(now, i)));
  const [of, choose] = useParam('month');
  const [asked, ask] = useParam('by');
  const by = sums.find((b) => b === asked) ?? 'project';
  const period = months.find((m) => m.from.slice(0, 7) === of) ?? months[0]!;
  const query = useCosts(organization, period, by, 'total');
  const daily = useCosts(organization, period, by, { top: shownParts - 1 });
  const costs = query.data?.by === by ? query.data : undefined;
  const days = daily.data?.by === by ? daily.data : undefined;
  return (
    <PageBody title={t('cost.title')}>
      {!organization ? (
        <Empty title={t('usage.noOrganization')} help={t('usage.noOrganizationHelp')} icon={ChartBarIcon} />
      ) : (
        <div className="basalt-stack">
          <div className="basalt-filters">
            <SelectField
              id="cost-month"
              label={t('usage.month')}
              value={period.from.slice(0, 7)}
              onChange={choose}
              options={months.map((m) => [m.from.slice(0, 7), monthName(m, language)])}
            />
            <SelectField
              id="cost-by"
              label={t('cost.by')}
              value={by}
              onChange={ask}
              options={sums.map((b) => [b, t(`cost.by.${b}`)])}
            />
          </div>
          <ErrorAlert error={query.error ?? daily.error} onRetry={() => (void query.refetch(), void daily.refetch())} />
          {costs?.continue && <p className="basalt-note">{t('cost.more')}</p>}
          {costs && days && (
            <div className="basalt-split">
              <Card>
                <CardTitle component="h2">{t('cost.byDay')}</CardTitle>
                <CardBody>
                  <CostChart stack={stackOf(days.items, daysOf(period, now))} by={by} currency={costs.currency} />
                </CardBody>
              </Card>
              <Totals costs={costs} period={period} />
            </div>
          )}
          {costs && <CostTable costs={costs} by={by} />}
        </div>
      )}
    </PageBody>
  );
}
