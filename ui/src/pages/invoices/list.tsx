import { FileInvoiceIcon } from '@patternfly/react-icons';
import { Link } from 'wouter';
import { base, type Schemas } from '../../api/client';
import { useOrganizationNames } from '../../api/cluster';
import { now } from '../../api/invoices';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { formatDay, formatMicros, formatPeriod } from '../../lib/format';
import { nameIn } from '../../lib/named';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { FinalInvoice } from '../../parts/final-invoice';
import { PageBody } from '../../parts/page';
import { PaymentMethods } from '../../parts/payment-cards';
import { WalletCard } from '../organizations/overview';
import { Payments } from '../payments/payments';
import { useProject } from '../../parts/project';
import { collections } from '../../api/collection';

export function Invoices({ session }: { session: Session }) {
  const { t, language } = useText();
  const { organization } = useProject();
  const payer = organization ?? session.organization;
  const list = useListing(collections.invoices, {
    fixed: { organization: payer },
    sort: '-spec.issuedAt',
  });
  const sells = may(session, 'reseller');
  const organizations = useOrganizationNames(sells);
  const customer: Column<Schemas['Invoice']> = {
    id: 'organization',
    sort: 'organization',
    title: t('common.organization'),
    value: (i) => nameIn(organizations.data?.items, i.meta.organization),
    cell: (i) => (
      <Link href={`/organizations/${i.meta.organization}/money`}>
        {nameIn(organizations.data?.items, i.meta.organization)}
      </Link>
    ),
  };
  const columns: Column<Schemas['Invoice']>[] = [
    {
      id: 'number',
      sort: 'spec.number',
      title: t('inv.number'),
      cell: (i) => <Link href={`/invoices/${i.meta.id}`}>{i.spec.number}</Link>,
    },
    ...(sells ? [customer] : []),
    {
      id: 'period',
      sort: 'spec.from',
      title: t('inv.period'),
      cell: (i) => formatPeriod(i.spec.from, i.spec.to, language),
    },
    { id: 'issued', sort: 'spec.issuedAt', title: t('inv.issued'), cell: (i) => formatDay(i.spec.issuedAt, language) },
    { id: 'due', sort: 'spec.dueAt', title: t('inv.due'), cell: (i) => formatDay(i.spec.dueAt, language) },
    {
      id: 'total',
      sort: 'spec.totalMicros',
      title: t('inv.total'),
      value: (i) => i.spec.totalMicros / 1e6,
      cell: (i) => <span className="basalt-number">{formatMicros(i.spec.totalMicros, i.spec.currency, language)}</span>,
    },
    {
      id: 'pdf',
      control: true,
      title: t('inv.pdf'),
      cell: (i) => (
        <a
          href={`${base}/v1/invoices/${encodeURIComponent(i.meta.id ?? '')}/pdf`}
          download={`${i.spec.number}.pdf`}
          aria-label={t('inv.pdfOf', { number: i.spec.number })}
        >
          {t('inv.pdf')}
        </a>
      ),
    },
  ];
  return (
    <PageBody title={t('inv.title')} actions={<Link href={`/invoices/${now}`}>{t('inv.now')}</Link>}>
      <div className="basalt-stack">
        {payer && <WalletCard id={payer} />}
        {payer && <PaymentMethods organization={payer} />}
        <ObjectList
          name="invoices"
          label={t('inv.title')}
          columns={columns}
          list={list}
          keyOf={(i) => i.meta.id ?? i.spec.number}
          empty={<Empty title={t('inv.empty')} help={t('inv.emptyHelp')} icon={FileInvoiceIcon} />}
        />
        {payer && (
          <div>
            <FinalInvoice organization={payer} />
          </div>
        )}
        {payer && <Payments organization={payer} />}
      </div>
    </PageBody>
  );
}
