import { FileInvoiceIcon } from '@patternfly/react-icons';
import { Link } from 'wouter';
import { base, type Schemas } from '../../api/client';
import { now } from '../../api/invoices';
import { useInvoices } from '../../api/queries';
import type { Session } from '../../api/session';
import { useText } from '../../i18n';
import { formatDay, formatMicros, formatPeriod } from '../../lib/format';
import { Empty, ObjectList, usePages, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { useProject } from '../../parts/project';

export function Invoices({ session }: { session: Session }) {
  const { t, language } = useText();
  const { organization } = useProject();
  const pages = usePages();
  const query = useInvoices({ organization: organization ?? session.organization, limit: 25, continue: pages.token });
  const columns: Column<Schemas['Invoice']>[] = [
    { title: t('inv.number'), cell: (i) => <Link href={`/invoices/${i.meta.id}`}>{i.spec.number}</Link> },
    { title: t('inv.period'), cell: (i) => formatPeriod(i.spec.from, i.spec.to, language) },
    { title: t('inv.issued'), cell: (i) => formatDay(i.spec.issuedAt, language) },
    { title: t('inv.due'), cell: (i) => formatDay(i.spec.dueAt, language) },
    {
      title: t('inv.total'),
      cell: (i) => <span className="basalt-number">{formatMicros(i.spec.totalMicros, i.spec.currency, language)}</span>,
    },
    {
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
      <ObjectList
        label={t('inv.title')}
        columns={columns}
        query={query}
        keyOf={(i) => i.meta.id ?? i.spec.number}
        pages={pages}
        empty={<Empty title={t('inv.empty')} help={t('inv.emptyHelp')} icon={FileInvoiceIcon} />}
      />
    </PageBody>
  );
}
