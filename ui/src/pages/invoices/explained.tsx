// The usage behind an invoice line: hours, and for each hour the metered records, to the second.
import { Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { useExplanation, type Bill, type Line } from '../../api/invoices';
import { quantityOf } from '../../api/quantities';
import type { Period } from '../../api/queries';
import { useText } from '../../i18n';
import { priceOf, whatOf } from '../../lib/bill';
import { formatMicros, formatQuantity, formatSecond, formatTime } from '../../lib/format';
import { Quantity } from '../../parts/exact';
import { ObjectList, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { Rows } from '../../parts/rows';

interface Props {
  id: string;
  bill: Bill;
  line: Line;
  organization?: string;
  period: Period;
  above: { href: string; title: string };
}

export function Explained({ id, bill, line, organization, period, above }: Props) {
  const text = useText();
  const { t, language } = text;
  const [hour, choose] = useState('');
  const query = useExplanation(id, organization, period, line.id);
  const rounded = (n: number) => (line.meter ? formatQuantity(line.meter, n, text, line.per) : String(n));
  const show = (n: number | bigint) => (line.meter ? <Quantity meter={line.meter} n={n} per={line.per} /> : String(n));
  const columns: Column<Schemas['InvoiceHour']>[] = [
    { id: 'hour', title: t('inv.hour'), cell: (h) => formatTime(h.hour, language) },
    {
      id: 'quantity',
      title: t('usage.quantity'),
      cell: (h) => show(quantityOf(h)),
    },
    {
      id: 'records',
      title: t('inv.records'),
      cell: (h) => (
        <Button
          variant="link"
          isInline
          aria-expanded={h.hour === hour}
          aria-label={t('inv.showRecordsOf', { hour: formatTime(h.hour, language) })}
          onClick={() => choose(h.hour === hour ? '' : h.hour)}
        >
          {t('inv.showRecords')}
        </Button>
      ),
    },
  ];
  return (
    <PageBody title={[whatOf(line, text), line.resourceName].filter(Boolean).join(', ')} above={above}>
      <div className="basalt-stack">
        <Card>
          <CardBody>
            <Rows
              rows={[
                [t('usage.resource'), line.resource && <code>{line.resource}</code>],
                [t('usage.quantity'), line.quantity && show(quantityOf(line))],
                [t('inv.price'), priceOf(line, bill.currency, text)],
                [t('inv.amount'), formatMicros(line.amountMicros, bill.currency, language)],
              ]}
            />
          </CardBody>
        </Card>
        {hour && <Records id={id} organization={organization} period={period} line={line} hour={hour} />}
        <ObjectList
          label={t('inv.hours')}
          columns={columns}
          query={{ ...query, data: query.data && { items: query.data.hours } }}
          keyOf={(h) => h.hour}
          empty={<p className="basalt-note">{t('inv.noHours')}</p>}
        />
        {query.data?.late?.map((l) => (
          <p key={l.id}>{t('inv.lateHelp', { quantity: rounded(l.quantity ?? 0) })}</p>
        ))}
      </div>
    </PageBody>
  );
}

function Records({
  id,
  organization,
  period,
  line,
  hour,
}: {
  id: string;
  organization?: string;
  period: Period;
  line: Line;
  hour: string;
}) {
  const text = useText();
  const { t, language } = text;
  const query = useExplanation(id, organization, period, line.id, hour);
  const columns: Column<Schemas['UsageRecord']>[] = [
    { id: 'begins', title: t('inv.begins'), cell: (r) => formatSecond(r.spec.start, language) },
    { id: 'ends', title: t('inv.ends'), cell: (r) => formatSecond(r.spec.end, language) },
    {
      id: 'quantity',
      title: t('usage.quantity'),
      cell: (r) => <Quantity meter={r.spec.meter} n={quantityOf(r.spec)} per={line.per} />,
    },
  ];
  const title = t('inv.recordsOf', { hour: formatTime(hour, language) });
  return (
    <Card>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('inv.recordsHelp')}</p>
        <ObjectList
          label={title}
          columns={columns}
          query={{ ...query, data: query.data && { items: query.data.records ?? [] } }}
          keyOf={(r) => `${r.meta.id} ${r.spec.start}`}
          empty={<p className="basalt-note">{t('inv.noRecords')}</p>}
        />
      </CardBody>
    </Card>
  );
}
