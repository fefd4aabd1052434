// Revenue by month, organization or meter. The server calculates the sums.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { ChartLineIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { Link } from 'wouter';
import { base } from '../api/client';
import { useOrganizations } from '../api/customers';
import { useRevenue, type Revenue as Sum, type RevenueBy } from '../api/revenue';
import { useText } from '../i18n';
import { formatMicros } from '../lib/format';
import { monthName } from '../lib/period';
import { choices } from '../lib/revenue';
import { Empty, ObjectList, usePages, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { SelectField } from '../parts/text-field';

const sums: RevenueBy[] = ['month', 'organization', 'meter'];

function Exports({ month }: { month: { id: string; from: string; to: string } }) {
  const { t } = useText();
  const organizations = useOrganizations({ limit: 1000 });
  const [chosen, choose] = useState('');
  const items = organizations.data?.items ?? [];
  const organization = chosen || items[0]?.meta.id || '';
  if (items.length === 0) return null;
  const file = (format: string) =>
    `${base}/v1/usage/export?${new URLSearchParams({ organization, from: month.from, to: month.to, format })}`;
  return (
    <Card>
      <CardTitle component="h2">{t('rev.exports')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('rev.exportHelp')}</p>
        <SelectField
          id="export-organization"
          label={t('signIn.organization')}
          value={organization}
          onChange={choose}
          options={items.map((o) => [o.meta.id ?? '', o.spec.displayName || o.meta.name])}
        />
        <div className="basalt-actions">
          <a href={file('csv')} download={`usage-${month.id}.csv`}>
            {t('rev.export')}
          </a>
          <a href={file('focus')} download={`focus-${month.id}.csv`}>
            {t('rev.exportFocus')}
          </a>
        </div>
      </CardBody>
    </Card>
  );
}

export function Revenue() {
  const { t, has, language } = useText();
  const [periods] = useState(() => choices(new Date()));
  const [chosen, choose] = useState('last12');
  const [by, setBy] = useState<RevenueBy>('month');
  const pages = usePages();
  const period = periods.find((p) => p.id === chosen) ?? periods[0]!;
  const query = useRevenue({ from: period.from, to: period.to }, by, pages.token);
  const resells = query.data?.totals.some((s) => s.wholesaleMicros) ?? false;
  const titleOf = (p: (typeof periods)[number]) =>
    p.kind === 'last12'
      ? t('rev.last12')
      : p.kind === 'year'
        ? t('rev.year', { year: p.from.slice(0, 4) })
        : monthName(p, language);
  const money = (micros: number, currency: string) => (
    <span className="basalt-number">{formatMicros(micros, currency, language)}</span>
  );
  // A list may render new rows with the previous columns, so each cell depends only on its row.
  const name = (s: Sum) => {
    if (s.by === 'month') return monthName({ from: `${s.key}-01T00:00:00Z`, to: '' }, language);
    if (s.by === 'organization') return <Link href={`/organizations/${s.key}`}>{s.name || s.key}</Link>;
    if (s.key === 'tax') return t('rev.taxes');
    if (s.key === 'minimum') return t('rev.minimum');
    const key = `meter.${s.key}`;
    return has(key) ? t(key) : s.key;
  };
  const columns: Column<Sum>[] = [
    { id: 'by', title: t(`rev.by.${by}`), cell: name },
    { id: 'net', title: t('rev.net'), cell: (s) => money(s.netMicros, s.currency) },
    { id: 'tax', title: t('rev.tax'), cell: (s) => money(s.taxMicros, s.currency) },
    { id: 'gross', title: t('rev.gross'), cell: (s) => money(s.netMicros + s.taxMicros, s.currency) },
    { id: 'credited', title: t('rev.credited'), cell: (s) => money(s.creditedMicros, s.currency) },
    ...(by === 'meter'
      ? []
      : [{ id: 'paid', title: t('rev.paid'), cell: (s: Sum) => money(s.paidMicros, s.currency) }]),
    { id: 'invoices', title: t('rev.invoices'), cell: (s) => s.invoices },
    ...(resells
      ? [
          { id: 'wholesale', title: t('rev.wholesale'), cell: (s: Sum) => money(s.wholesaleMicros ?? 0, s.currency) },
          {
            id: 'margin',
            title: t('rev.margin'),
            cell: (s: Sum) => money(s.netMicros - (s.wholesaleMicros ?? 0), s.currency),
          },
        ]
      : []),
  ];
  return (
    <PageBody title={t('rev.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('rev.help')}</p>
        <div className="basalt-filters">
          <SelectField
            id="revenue-period"
            label={t('rev.period')}
            value={chosen}
            onChange={(v) => (choose(v), pages.reset())}
            options={periods.map((p) => [p.id, titleOf(p)])}
          />
          <SelectField
            id="revenue-by"
            label={t('rev.by')}
            value={by}
            onChange={(v) => (setBy(v as RevenueBy), pages.reset())}
            options={sums.map((b) => [b, t(`rev.by.${b}`)])}
          />
        </div>
        {(query.data?.totals.length ?? 0) > 0 && (
          <div className="basalt-columns">
            {query.data?.totals.map((s) => (
              <Card key={s.currency}>
                <CardTitle component="h2">{t('rev.total')}</CardTitle>
                <CardBody>
                  <p className="basalt-big">{formatMicros(s.netMicros, s.currency, language)}</p>
                  <p className="basalt-note">
                    {t('rev.totalPaid', { paid: formatMicros(s.paidMicros, s.currency, language) })}
                  </p>
                  {resells && (
                    <p className="basalt-note">
                      {t('rev.totalMargin', {
                        margin: formatMicros(s.netMicros - (s.wholesaleMicros ?? 0), s.currency, language),
                        wholesale: formatMicros(s.wholesaleMicros ?? 0, s.currency, language),
                      })}
                    </p>
                  )}
                </CardBody>
              </Card>
            ))}
          </div>
        )}
        <ObjectList
          label={t('rev.title')}
          columns={columns}
          query={query}
          keyOf={(s) => `${s.key} ${s.currency}`}
          pages={pages}
          empty={<Empty title={t('rev.empty')} help={t('rev.emptyHelp')} icon={ChartLineIcon} />}
        />
        {period.kind === 'month' && <Exports month={period} />}
      </div>
    </PageBody>
  );
}
