// One invoice: its lines and their details. The address "now" shows what this month would cost if it ended now.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { FileInvoiceIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { Link } from 'wouter';
import { useAutoPay } from '../../api/cards';
import { asApiError, base } from '../../api/client';
import { now, useBill, type Bill, type Line } from '../../api/invoices';
import { quantityOf } from '../../api/quantities';
import { useWallet } from '../../api/queries';
import type { Session } from '../../api/session';
import { Loading } from '../../parts/loading';
import { useText } from '../../i18n';
import { priceOf, whatOf } from '../../lib/bill';
import { formatDay, formatMicros, formatPercent, formatPeriod, formatTime } from '../../lib/format';
import { month } from '../../lib/period';
import { ErrorAlert } from '../../parts/error';
import { Money, Quantity } from '../../parts/exact';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { PayInvoice } from '../../parts/pay';
import { Rows } from '../../parts/rows';
import { useProject } from '../../parts/project';
import { Attempts } from './attempts';
import { Explained } from './explained';

export function BillPage({ session, id, tab }: { session: Session; id: string; tab: string }) {
  const { t } = useText();
  const { organization = session.organization } = useProject();
  const [period] = useState(() => month(new Date()));
  const query = useBill(id, organization, period);
  const above = { href: '/invoices', title: t('inv.title') };
  const title =
    id === now ? t('inv.now') : query.data ? t('inv.numbered', { number: query.data.number ?? id }) : t('inv.title');
  if (id === now && !organization) {
    return (
      <PageBody title={title} above={above}>
        <Empty title={t('usage.noOrganization')} help={t('usage.noOrganizationHelp')} icon={FileInvoiceIcon} />
      </PageBody>
    );
  }
  if (query.isPending) return <Loading />;
  if (!query.data) {
    const gone = asApiError(query.error).code === 'not_found';
    return (
      <PageBody title={gone ? t('inv.gone') : title} above={above}>
        {gone ? (
          <Empty
            title={t('inv.gone')}
            help={t('inv.goneHelp')}
            icon={FileInvoiceIcon}
            action={<Link href="/invoices">{t('inv.toList')}</Link>}
          />
        ) : (
          <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        )}
      </PageBody>
    );
  }
  const line = query.data.lines.find((l) => l.id === tab);
  if (line)
    return (
      <Explained
        id={id}
        bill={query.data}
        line={line}
        organization={organization}
        period={period}
        above={{ href: `/invoices/${id}`, title }}
      />
    );
  const pdf =
    id === now ? undefined : (
      <a href={`${base}/v1/invoices/${encodeURIComponent(id)}/pdf`} download={`${query.data.number}.pdf`}>
        {t('inv.pdf')}
      </a>
    );
  return (
    <PageBody title={title} above={above} actions={pdf}>
      <div className="basalt-stack">
        <Head bill={query.data} />
        {id !== now && <Pay invoice={id} organization={query.data.organization} />}
        {id !== now && <Attempts invoice={id} organization={query.data.organization} />}
        <Lines id={id} bill={query.data} />
      </div>
    </PageBody>
  );
}

function Pay({ invoice, organization }: { invoice: string; organization: string | undefined }) {
  const { t } = useText();
  const wallet = useWallet(organization, true).data;
  const pays = useAutoPay(organization, Boolean(wallet?.autoPay)).data;
  const waits = pays?.status?.leastMicros && wallet?.open?.some((o) => o.invoice === invoice);
  return wallet ? (
    <div className="basalt-stack">
      {waits && <p className="basalt-note">{t('autopay.waitsThis')}</p>}
      <div>
        <PayInvoice wallet={wallet} invoice={invoice} />
      </div>
    </div>
  ) : null;
}

const party = (p: Bill['customer']) =>
  [p?.name, ...(p?.address ?? []), p?.country, p?.taxId].filter(Boolean).join(', ');

function Head({ bill: b }: { bill: Bill }) {
  const { t, language } = useText();
  const verified = b.tax?.verification;
  const evidence = ({ number, checkedAt, consultation = '' }: NonNullable<typeof verified>) =>
    t(consultation ? 'inv.verifiedAs' : 'inv.verifiedBy', {
      number,
      at: formatTime(checkedAt, language),
      consultation,
    });
  return (
    <Card>
      <CardTitle component="h2">{formatMicros(b.totalMicros, b.currency, language)}</CardTitle>
      <CardBody className="basalt-stack">
        {!b.number && <p className="basalt-note">{t('inv.nowHelp')}</p>}
        <Rows
          rows={[
            [t('inv.period'), formatPeriod(b.from, b.to, language)],
            [t('inv.issued'), b.issuedAt && formatDay(b.issuedAt, language)],
            [t('inv.due'), b.dueAt && formatDay(b.dueAt, language)],
            [t('inv.seller'), party(b.prices?.seller)],
            [t('inv.customer'), party(b.customer)],
            [
              t('inv.tax'),
              b.tax &&
                t(`inv.tax.${b.tax.reason}`, {
                  tax: `${b.tax.name ?? ''} ${formatPercent((b.tax.basisPoints ?? 0) / 100, language)}`,
                }),
            ],
            [t('inv.verified'), verified && evidence(verified)],
          ]}
        />
      </CardBody>
    </Card>
  );
}

function Lines({ id, bill }: { id: string; bill: Bill }) {
  const text = useText();
  const { t } = text;
  const columns: Column<Line>[] = [
    {
      id: 'what',
      title: t('inv.what'),
      cell: (l) => (
        <Link
          href={`/invoices/${id}/${l.id}`}
          aria-label={t('inv.explainOf', { what: [whatOf(l, text), l.resourceName].filter(Boolean).join(', ') })}
        >
          {whatOf(l, text)}
        </Link>
      ),
    },
    { id: 'resource', title: t('usage.resource'), cell: (l) => l.resourceName || l.resource || '–' },
    {
      id: 'quantity',
      title: t('usage.quantity'),
      cell: (l) => (l.quantity && l.meter ? <Quantity meter={l.meter} n={quantityOf(l)} per={l.per} /> : '–'),
    },
    { id: 'price', title: t('inv.price'), cell: (l) => priceOf(l, bill.currency, text) || '–' },
    {
      id: 'amount',
      title: t('inv.amount'),
      cell: (l) => <Money micros={l.amountMicros} currency={bill.currency} />,
    },
  ];
  const query = { data: { items: bill.lines }, error: null, isPending: false, refetch: () => undefined };
  return (
    <ObjectList
      label={t('inv.lines')}
      columns={columns}
      query={query}
      keyOf={(l) => l.id}
      empty={<Empty title={t('usage.empty')} help={t('usage.emptyHelp')} icon={FileInvoiceIcon} />}
    />
  );
}
